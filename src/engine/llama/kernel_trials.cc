#include "engine/llama/kernel_trials.h"

#include <sstream>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "kernels/trial.h"

namespace outrider {
namespace {

constexpr char kOurs[] = "outrider", kTheirs[] = "ggml";

}  // namespace

KernelTrials::KernelTrials(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const auto text = ReadFile(path_);
  if (!text) return;
  std::istringstream lines(*text);
  for (std::string name, winner; lines >> name >> winner;) {
    if (winner == kOurs || winner == kTheirs) ours_[name] = winner == kOurs;
  }
}

template <typename Try>
bool KernelTrials::Known(const std::string& name, Try ours_are_faster) {
  if (const auto known = ours_.find(name); known != ours_.end()) return known->second;
  const bool ours = ours_[name] = ours_are_faster();
  std::string text;
  for (const auto& [tried, won] : ours_) text += tried + " " + (won ? kOurs : kTheirs) + "\n";
  if (path_.empty()) return ours;
  if (const Status status = KeepFile(path_, text); !status.ok()) LogDebug("kernel trials: {}", status.message());
  return ours;
}

bool KernelTrials::OursFor(ggml_type type) {
  return Known(ggml_type_name(type), [type] { return kernels::AreFasterFor(type); });
}

bool KernelTrials::OursForAttention() {
  return Known("attention", [] { return kernels::AreFasterForAttention(); });
}

}  // namespace outrider
