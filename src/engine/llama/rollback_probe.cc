#include "engine/llama/rollback_probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/log.h"

namespace outrider {
namespace {

constexpr int kMaxDeviceSnapshots = 8;  // drafts are seldom longer; each costs memory and, in some models, time
constexpr double kMuchQuicker = 0.5;

using Logits = std::vector<float>;

// A context with one sequence, for trying things out.
class Trial {
 public:
  Trial(llama_model* model, llama_context_params params, int device_snapshots) : n_vocab_(VocabularySize(model)) {
    params.n_ctx = 256;
    params.n_batch = params.n_ubatch = kMaxDeviceSnapshots + 8;
    params.n_outputs_max = 1;
    params.n_seq_max = 1;
    params.n_rs_seq = static_cast<uint32_t>(device_snapshots);
    context_.reset(llama_init_from_model(model, params));
  }

  bool usable() const { return context_ != nullptr; }
  int device_snapshots() const { return static_cast<int>(llama_n_rs_seq(context_.get())); }

  void Clear() { llama_memory_clear(memory(), true); }

  // Decodes the right tokens for the next `right` positions, then `wrong` other tokens. Returns the logits of the last
  // one.
  std::optional<Logits> Decode(int right, int wrong = 0) {
    const int count = right + wrong;
    std::vector<llama_token> tokens;
    std::vector<llama_pos> positions;
    llama_seq_id seq = 0;
    std::vector<llama_seq_id*> sequences(static_cast<size_t>(count), &seq);
    std::vector<int32_t> sequence_counts(static_cast<size_t>(count), 1);
    std::vector<int8_t> wants_logits(static_cast<size_t>(count), 0);
    wants_logits.back() = 1;
    const llama_pos first = llama_memory_seq_pos_max(memory(), 0) + 1;
    for (int i = 0; i < count; ++i) {
      positions.push_back(first + i);
      tokens.push_back((positions.back() * 7919 + (i < right ? 17 : 104729)) % n_vocab_);
    }
    llama_batch batch{};
    batch.n_tokens = count;
    batch.token = tokens.data();
    batch.pos = positions.data();
    batch.n_seq_id = sequence_counts.data();
    batch.seq_id = sequences.data();
    batch.logits = wants_logits.data();
    try {
      if (llama_decode(context_.get(), batch) != 0) return std::nullopt;
    } catch (const std::exception&) {  // out of memory, or a device that failed: the real context will say so
      return std::nullopt;
    }
    const float* logits = llama_get_logits_ith(context_.get(), count - 1);
    return Logits(logits, logits + n_vocab_);
  }

  bool DropFrom(llama_pos length) { return llama_memory_seq_rm(memory(), 0, length, -1); }

  std::vector<uint8_t> State(llama_state_seq_flags flags) {
    std::vector<uint8_t> state(llama_state_seq_get_size_ext(context_.get(), 0, flags));
    state.resize(llama_state_seq_get_data_ext(context_.get(), state.data(), state.size(), 0, flags));
    return state;
  }

  bool SetState(const std::vector<uint8_t>& state, llama_state_seq_flags flags) {
    return llama_state_seq_set_data_ext(context_.get(), state.data(), state.size(), 0, flags) == state.size();
  }

 private:
  struct Free {
    void operator()(llama_context* context) const { llama_free(context); }
  };

  static int VocabularySize(llama_model* model) { return llama_vocab_n_tokens(llama_model_get_vocab(model)); }
  llama_memory_t memory() { return llama_get_memory(context_.get()); }

  std::unique_ptr<llama_context, Free> context_;
  const int n_vocab_;
};

constexpr int kPrompt = 5, kWrong = 2;  // tokens

// Whether the logits are those of the same state. On backends whose results depend on the shape of a batch they differ
// a little; with another state they differ a lot.
bool Alike(const char* way, const std::optional<Logits>& expected, const std::optional<Logits>& found) {
  constexpr float kTolerance = 0.05f;  // of the range of the logits
  if (!expected || !found) {
    LogDebug("recurrent memory cannot be taken back by {}", way);
    return false;
  }
  const auto [lowest, highest] = std::minmax_element(expected->begin(), expected->end());
  float off = 0;
  bool finite = true;
  for (size_t i = 0; i < expected->size(); ++i) {
    const float difference = std::abs((*expected)[i] - (*found)[i]);
    finite = finite && std::isfinite(difference);
    off = std::max(off, difference);
  }
  LogDebug("recurrent memory taken back by {}: logits differ by {:.2g} of {:.2g}", way, off, *highest - *lowest);
  return finite && off <= kTolerance * (*highest - *lowest);
}

// The logits without any rollback. After every kind of rollback the logits must be the same.
std::optional<Logits> Straight(Trial& trial) {
  trial.Clear();
  trial.Decode(kPrompt);
  trial.Decode(1);
  return trial.Decode(1);
}

std::optional<Logits> AllAtOnce(Trial& trial) {
  trial.Clear();
  return trial.Decode(kPrompt + 2);
}

std::optional<Logits> ThroughDeviceSnapshots(Trial& trial) {
  trial.Clear();
  trial.Decode(kPrompt);
  trial.Decode(1, kWrong);
  if (!trial.DropFrom(kPrompt + 1)) return std::nullopt;
  return trial.Decode(1);
}

struct Timed {
  std::optional<Logits> logits;
  double seconds = 0;  // for reading a state and writing it
};

Timed ThroughStates(Trial& trial, llama_state_seq_flags flags) {
  using Clock = std::chrono::steady_clock;
  Timed result;
  trial.Clear();
  trial.Decode(kPrompt);
  const auto start = Clock::now();
  const std::vector<uint8_t> state = trial.State(flags);
  result.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  trial.Decode(1, kWrong);
  const auto again = Clock::now();
  if (state.empty() || !trial.SetState(state, flags) || !trial.DropFrom(kPrompt)) return result;
  result.seconds += std::chrono::duration<double>(Clock::now() - again).count();
  result.logits = trial.Decode(2);
  return result;
}

// How many snapshots of each sequence there is memory for, at most kMaxDeviceSnapshots.
int AffordableSnapshots(size_t state_bytes, const llama_context_params& params, size_t snapshot_memory) {
  const size_t of_all_sequences = state_bytes * params.n_seq_max;
  const size_t affordable = of_all_sequences > 0 ? snapshot_memory / of_all_sequences : 0;
  return static_cast<int>(std::min<size_t>(affordable, kMaxDeviceSnapshots));
}

}  // namespace

RollbackFinding ProbeRollback(llama_model* model, const llama_context_params& params, size_t snapshot_memory) {
  RollbackFinding finding;
  if (!llama_model_is_recurrent(model) && !llama_model_is_hybrid(model)) return finding;
  finding.way = Rollback::kNone;
  Trial trial(model, params, kMaxDeviceSnapshots);
  if (!trial.usable()) return finding;
  const auto straight = Straight(trial);
  if (!straight) return finding;
  finding.rows_independent = AllAtOnce(trial) == straight;

  const size_t state_bytes = trial.State(LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY).size();
  const Timed host = ThroughStates(trial, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY);
  if (!Alike("a saved state", straight, host.logits)) return finding;
  finding.way = Rollback::kReplay;
  const int affordable = AffordableSnapshots(state_bytes, params, snapshot_memory);
  if (affordable > 0) {
    const Timed device = ThroughStates(trial, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY | LLAMA_STATE_SEQ_FLAGS_ON_DEVICE);
    finding.states_on_device =
        Alike("a state saved on the device", straight, device.logits) && device.seconds < kMuchQuicker * host.seconds;
  }

  const int max_snapshots = static_cast<int>(params.n_ubatch) - 2;  // libllama aborts at n_ubatch <= n_rs_seq + 1
  const int snapshots = std::min({affordable, max_snapshots, trial.device_snapshots()});
  if (snapshots < 2) return finding;
  if (!Alike("device snapshots", straight, ThroughDeviceSnapshots(trial))) return finding;
  finding.way = Rollback::kDeviceSnapshots;
  finding.device_snapshots = snapshots;
  return finding;
}

}  // namespace outrider
