#include "engine/llama/sequence_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>

#include "base/log.h"

namespace outrider {

SequenceMemory::SequenceMemory(llama_context* context, int n_sequences, const RollbackFinding& rollback,
                               size_t snapshot_bytes)
    : context_(context),
      rollback_(rollback.way),
      device_snapshots_(rollback.device_snapshots),
      states_on_device_(rollback.states_on_device),
      lengths_(static_cast<size_t>(n_sequences)),
      undo_(static_cast<size_t>(n_sequences)),
      snapshots_(n_sequences, snapshot_bytes) {}

Pos SequenceMemory::TruncateTo(SeqId seq, Pos length) {
  Pos& current = lengths_[static_cast<size_t>(seq)];
  return current = rollback_ == Rollback::kDropCells ? DropCells(seq, length) : GoBack(seq, length);
}

Pos SequenceMemory::DropCells(SeqId seq, Pos length) {
  const Pos kept = std::min(length, Length(seq));
  // Even if nothing is to be dropped: after a failed decode there may be cells past the end.
  if (kept > 0 && (kept == Length(seq) || WindowIsWhole(seq, kept)) &&
      llama_memory_seq_rm(llama_get_memory(context_), seq, kept, -1)) {
    return kept;
  }
  GiveUp(seq);
  return 0;
}

// Whether everything that the token after the first `length` tokens attends to is still in memory. libllama may reuse
// cells of a layer with a sliding window as soon as they are before the window of the newest token.
bool SequenceMemory::WindowIsWhole(SeqId seq, Pos length) const {
  const Pos window = llama_model_n_swa(llama_get_model(context_));
  if (window <= 0) return true;
  const Pos oldest = llama_memory_seq_pos_min(llama_get_memory(context_), seq);
  return oldest >= 0 && oldest <= std::max(0, length - window);
}

// Rolls a running state back: by the backend's snapshots if they reach far enough, else to one of our copies.
Pos SequenceMemory::GoBack(SeqId seq, Pos length) {
  const Pos current = Length(seq);
  Undo& undo = undo_[static_cast<size_t>(seq)];
  if (length >= current && length > 0) return current;
  const int rows = current - length;
  // libllama also reports success for older snapshots that are not valid: only those of the rows of the last batch are.
  if (length > 0 && rows <= undo.rows && llama_memory_seq_rm(llama_get_memory(context_), seq, length, -1)) {
    undo = {-1, true};
    snapshots_.Cut(seq, length);
    return length;
  }
  const Snapshot* snapshot = snapshots_.Latest(seq, length);
  if (length > 0 && snapshot != nullptr && RestoreState(seq, snapshot->length, snapshot->state, FlagsFor(*snapshot))) {
    const Pos back = snapshot->length;
    snapshots_.Cut(seq, back);
    return back;
  }
  GiveUp(seq);
  return 0;
}

Pos SequenceMemory::TruncatedLength(SeqId seq, Pos length) const {
  const Pos current = Length(seq);
  if (length >= current) return current;
  if (rollback_ == Rollback::kDropCells) return WindowIsWhole(seq, length) ? length : 0;
  if (length > 0 && current - length <= undo_[static_cast<size_t>(seq)].rows) return length;
  const Snapshot* snapshot = snapshots_.Latest(seq, length);
  return snapshot != nullptr ? snapshot->length : 0;
}

void SequenceMemory::GiveUp(SeqId seq) {
  llama_memory_seq_rm(llama_get_memory(context_), seq, -1, -1);
  undo_[static_cast<size_t>(seq)] = {};
  snapshots_.BeginEpoch(seq);
}

void SequenceMemory::DropFillers(std::span<const SeqId> sequences) {
  for (const SeqId seq : sequences) llama_memory_seq_rm(llama_get_memory(context_), seq, Length(seq), -1);
}

void SequenceMemory::SaveState(SeqId seq) {
  if (!KeepsStates(rollback_) || Length(seq) == 0) return;
  Snapshot* snapshot = snapshots_.BeforeDraft(seq, Length(seq));
  if (snapshot != nullptr && !CopyState(seq, FlagsFor(*snapshot), &snapshot->state)) snapshots_.DropBeforeDraft(seq);
}

void SequenceMemory::Remember(SeqId seq) {
  if (!KeepsStates(rollback_) || Length(seq) == 0) return;
  constexpr auto kFlags = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
  if (!snapshots_.WorthKeeping(seq, Length(seq), llama_state_seq_get_size_ext(context_, seq, kFlags))) return;
  std::vector<uint8_t> state;
  if (CopyState(seq, kFlags, &state)) snapshots_.Keep(seq, Length(seq), std::move(state));
}

// libllama can keep one state per sequence on the device; it is used for the state before a draft.
llama_state_seq_flags SequenceMemory::FlagsFor(const Snapshot& snapshot) const {
  const bool on_device = states_on_device_ && snapshots_.IsBeforeDraft(snapshot);
  return LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY | (on_device ? LLAMA_STATE_SEQ_FLAGS_ON_DEVICE : 0);
}

bool SequenceMemory::CopyState(SeqId seq, llama_state_seq_flags flags, std::vector<uint8_t>* state) {
  try {
    state->resize(llama_state_seq_get_size_ext(context_, seq, flags));
    return !state->empty() &&
           llama_state_seq_get_data_ext(context_, state->data(), state->size(), seq, flags) == state->size();
  } catch (const std::exception& error) {  // out of memory, or a device that failed
    LogError("a state of sequence {} could not be kept: {}", seq, error.what());
    return false;
  }
}

bool SequenceMemory::RestoreState(SeqId seq, Pos length, std::span<const uint8_t> state, llama_state_seq_flags flags) {
  undo_[static_cast<size_t>(seq)] = {};
  llama_memory_t memory = llama_get_memory(context_);
  try {
    const size_t read = llama_state_seq_set_data_ext(context_, state.data(), state.size(), seq, flags);
    // The running state is restored, but the attention cells of the tokens after it are still there: remove them.
    return read == state.size() && llama_memory_seq_rm(memory, seq, length, -1) &&
           llama_memory_seq_pos_max(memory, seq) == length - 1;
  } catch (const std::exception& error) {
    LogError("a state of sequence {} could not be restored: {}", seq, error.what());
    return false;
  }
}

Result<std::vector<uint8_t>> SequenceMemory::SaveSequence(SeqId seq) {
  std::vector<uint8_t> state;
  try {
    state.resize(llama_state_seq_get_size(context_, seq));
  } catch (const std::bad_alloc&) {
    return Internal(fmt::format("there is not enough memory to copy that of sequence {}", seq));
  }
  if (llama_state_seq_get_data(context_, state.data(), state.size(), seq) != state.size()) {
    return Internal(fmt::format("the memory of sequence {} could not be copied", seq));
  }
  return state;
}

Status SequenceMemory::RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) {
  TruncateTo(seq, 0);
  const size_t read = length <= static_cast<Pos>(llama_n_ctx_seq(context_))
                          ? llama_state_seq_set_data(context_, state.data(), state.size(), seq)
                          : 0;
  const bool whole = read == state.size() && llama_memory_seq_pos_max(llama_get_memory(context_), seq) == length - 1;
  lengths_[static_cast<size_t>(seq)] = length;
  if (whole) return {};
  GiveUp(seq);
  lengths_[static_cast<size_t>(seq)] = 0;
  return InvalidArgument(
      "the saved state does not belong to this model and these settings, or is longer than the context");
}

// After a rollback by the backend's snapshots, the present state of the sequence is one of these snapshots until the
// sequence is decoded again. If other sequences are decoded first, they could overwrite it, so it is copied to its
// regular place before.
void SequenceMemory::BeforeDecode(std::span<const BatchRow> rows) {
  for (size_t i = 0; i < undo_.size(); ++i) {
    if (!undo_[i].pending) continue;
    const auto seq = static_cast<SeqId>(i);
    if (std::any_of(rows.begin(), rows.end(), [seq](const BatchRow& row) { return row.seq == seq; })) continue;
    constexpr auto kFlags = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
    if (!CopyState(seq, kFlags, &settled_) || !RestoreState(seq, Length(seq), settled_, kFlags)) {
      GiveUp(seq);
      lengths_[i] = 0;
    }
  }
  for (Undo& undo : undo_) undo.rows = -1;
}

void SequenceMemory::AfterDecode(std::span<const BatchRow> rows, int free_rollback) {
  for (const BatchRow& row : rows) lengths_[static_cast<size_t>(row.seq)] = row.pos + 1;
  if (device_snapshots_ == 0) return;
  for (Undo& undo : undo_) undo.pending = false;
  for (const BatchRow& row : rows) {
    int& undoable = undo_[static_cast<size_t>(row.seq)].rows;
    undoable = std::min(undoable + 1, free_rollback);
  }
}

}  // namespace outrider
