#include "engine/llama/compute_threads.h"

#include <fmt/format.h>
#include <ggml-cpu.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>

namespace outrider {
namespace {

// Threads spin for a few milliseconds after a step, until the next one begins. With ggml's default of 50 they would
// take a core from other programs for a third of a second after every answer.
constexpr int kPoll = 1;

// The last digit has the bits of CPUs 0 to 3.
Status AddMask(std::string_view mask, std::span<bool> cpus) {
  std::string_view digits = mask;
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  for (size_t i = 0; i < digits.size(); ++i) {
    int bits = 0;
    const char* digit = &digits[digits.size() - 1 - i];
    const auto [end, error] = std::from_chars(digit, digit + 1, bits, 16);
    if (error != std::errc() || end != digit + 1) {
      return InvalidArgument(fmt::format("--cpu-mask '{}' is not a hexadecimal number", mask));
    }
    for (size_t bit = 0; bit < 4; ++bit) {
      if ((bits >> bit & 1) == 0) continue;
      if (4 * i + bit >= cpus.size()) {
        return InvalidArgument(fmt::format("--cpu-mask '{}' has a bit beyond CPU {}", mask, cpus.size() - 1));
      }
      cpus[4 * i + bit] = true;
    }
  }
  return {};
}

// "2-5", "-5" (from 0), "2-" (to the last).
Status AddRange(std::string_view range, std::span<bool> cpus) {
  const size_t dash = range.find('-');
  const auto wrong = [&] {
    return InvalidArgument(fmt::format("--cpu-range '{}' is not FIRST-LAST with CPUs 0 to {}", range, cpus.size() - 1));
  };
  if (dash == range.npos) return wrong();
  const auto read = [&](std::string_view text, size_t if_empty) {
    size_t number = if_empty;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool good = text.empty() || (error == std::errc() && end == text.data() + text.size());
    return good ? number : cpus.size();
  };
  const size_t first = read(range.substr(0, dash), 0), last = read(range.substr(dash + 1), cpus.size() - 1);
  if (first > last || last >= cpus.size()) return wrong();
  std::fill(cpus.begin() + static_cast<std::ptrdiff_t>(first), cpus.begin() + static_cast<std::ptrdiff_t>(last) + 1,
            true);
  return {};
}

}  // namespace

CpuOptions Inherit(CpuOptions options, const CpuOptions& others) {
  if (options.mask.empty() && options.range.empty()) {
    options.mask = others.mask;
    options.range = others.range;
  }
  if (options.strict == CpuOptions::kUnset) options.strict = others.strict;
  if (options.priority == CpuOptions::kUnset) options.priority = others.priority;
  if (options.poll == CpuOptions::kUnset) options.poll = others.poll;
  return options;
}

Result<ggml_threadpool_params> ThreadPoolParams(const CpuOptions& options, int threads) {
  ggml_threadpool_params params = ggml_threadpool_params_default(threads);
  if (Status status = AddMask(options.mask, params.cpumask); !status.ok()) return status;
  if (!options.range.empty()) {
    if (Status status = AddRange(options.range, params.cpumask); !status.ok()) return status;
  }
  params.strict_cpu = options.strict == 1;
  params.poll = static_cast<uint32_t>(options.poll == CpuOptions::kUnset ? kPoll : options.poll);
  if (options.priority != CpuOptions::kUnset) params.prio = static_cast<ggml_sched_priority>(options.priority);
  return params;
}

ComputeThreads::ComputeThreads(const ggml_threadpool_params& params)
    : params_(params), handle_(ggml_threadpool_new(&params_)) {}

ComputeThreads::~ComputeThreads() {
  ggml_threadpool_free(handle_);
}

}  // namespace outrider
