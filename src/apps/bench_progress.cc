#include "apps/bench_progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace outrider {
namespace {

constexpr const char* kClearLine = "\r\033[K";
constexpr size_t kBarWidth = 20;

std::string DurationText(double seconds) {
  return seconds < 90 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace

std::string BenchProgress::Add(const BenchRecord& record) {
  ++done_;
  const double elapsed = Milliseconds(clock_.Now() - start_) / 1000;
  const double left = elapsed / static_cast<double>(done_) * static_cast<double>(total_ - std::min(done_, total_));
  const std::string line = fmt::format("{} of {} answers, {} left, {}: {:.1f} t/s", done_, total_, DurationText(left),
                                       record.variant, record.answer.TokensPerSecond());
  const size_t bar = kBarWidth * done_ / std::max<size_t>(total_, 1);
  if (terminal_) return fmt::format("{}[{:<{}}] {}", kClearLine, std::string(bar, '#'), kBarWidth, line);
  const size_t bar_before = kBarWidth * (done_ - 1) / std::max<size_t>(total_, 1);
  return bar == bar_before ? "" : line + "\n";
}

std::string BenchProgress::End() const {
  return terminal_ && done_ > 0 ? kClearLine : "";
}

}  // namespace outrider
