#include "base/log.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>

namespace outrider {
namespace {

std::atomic<LogLevel> lowest_level{LogLevel::kInfo};

}  // namespace

void SetLogLevel(LogLevel lowest_shown) {
  lowest_level.store(lowest_shown, std::memory_order_relaxed);
}

bool LogEnabled(LogLevel level) {
  return level >= lowest_level.load(std::memory_order_relaxed);
}

void LogLine(LogLevel level, std::string_view message) {
  const auto now = std::chrono::system_clock::now();
  const auto seconds = std::chrono::time_point_cast<std::chrono::seconds>(now);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now - seconds).count();
  std::string line = fmt::format("{:%H:%M:%S}.{:03} {} ", fmt::localtime(std::chrono::system_clock::to_time_t(now)),
                                 millis, "DIWE"[static_cast<int>(level)]);
  for (char c : message) {
    // What strangers send can reach a message; a newline or escape in it must not forge lines or drive a terminal.
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  line += '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace outrider
