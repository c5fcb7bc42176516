#include "base/log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

namespace outrider {
namespace {

std::atomic<LogLevel> lowest_level{LogLevel::kInfo};
std::atomic<LogFormat> format_of_lines{LogFormat()};
std::atomic<int> log_file{-1};  // file descriptor; -1 = none

}  // namespace

void SetLogLevel(LogLevel lowest_shown) {
  lowest_level.store(lowest_shown, std::memory_order_relaxed);
}

void SetLogFormat(LogFormat format) {
  format_of_lines.store(format, std::memory_order_relaxed);
}

Status SetLogFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return InvalidArgument(fmt::format("--log-file '{}' cannot be written: {}", path, std::strerror(errno)));
  if (const int old = log_file.exchange(fd); old >= 0) ::close(old);
  return {};
}

bool LogEnabled(LogLevel level) {
  return level >= lowest_level.load(std::memory_order_relaxed);
}

void LogLine(LogLevel level, std::string_view message) {
  const LogFormat format = format_of_lines.load(std::memory_order_relaxed);
  std::string line;
  if (format.time) {
    const auto now = std::chrono::system_clock::now();
    const auto seconds = std::chrono::time_point_cast<std::chrono::seconds>(now);
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now - seconds).count();
    line = fmt::format("{:%H:%M:%S}.{:03} ", fmt::localtime(std::chrono::system_clock::to_time_t(now)), millis);
  }
  if (format.level) line += fmt::format("{} ", "DIWE "[static_cast<int>(level)]);
  for (char c : message) {
    // What strangers send can reach a message; a newline or escape in it must not forge lines or drive a terminal.
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  line += '\n';
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  if (const int fd = log_file.load(std::memory_order_relaxed); fd >= 0) written = ::write(fd, line.data(), line.size());
}

}  // namespace outrider
