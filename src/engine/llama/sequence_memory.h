// SequenceMemory: how many tokens of each sequence are in the memory of a libllama context, and how they are taken
// back.
//
// Attention cells are dropped. A running state (recurrent and hybrid models) is restored: from the snapshots that the
// backend keeps for the last rows of a batch, or from a copy that was made before a draft or at the end of a prompt.
#pragma once

#include <llama.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/batch.h"
#include "engine/engine.h"
#include "engine/llama/rollback_probe.h"
#include "engine/snapshot_store.h"

namespace outrider {

class SequenceMemory {
 public:
  // `snapshot_bytes`: memory for copies of states. The context must outlive this object.
  SequenceMemory(llama_context* context, int n_sequences, const RollbackFinding& rollback, size_t snapshot_bytes);

  Pos Length(SeqId seq) const { return lengths_[static_cast<size_t>(seq)]; }

  // As in Engine.
  Pos TruncateTo(SeqId seq, Pos length);
  Pos TruncatedLength(SeqId seq, Pos length) const;
  void SaveState(SeqId seq);
  void Remember(SeqId seq);
  Result<std::vector<uint8_t>> SaveSequence(SeqId seq);
  Status RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length);

  // Must be called before `rows` are decoded.
  void BeforeDecode(std::span<const BatchRow> rows);

  // Must be called after `rows` were decoded. Up to `free_rollback` rows of each sequence can be taken back without a
  // copy of the state.
  void AfterDecode(std::span<const BatchRow> rows, int free_rollback);

  // Must be called after a decode, successful or not, that had a row which nobody asked for at the end of each of
  // `sequences`: removes these rows.
  void DropFillers(std::span<const SeqId> sequences);

 private:
  // Which rollbacks of a running state are possible with the backend's snapshots.
  struct Undo {
    int rows = -1;         // rows of the last batch that can be taken back, once
    bool pending = false;  // they were taken back, and the sequence was not decoded since
  };

  Pos DropCells(SeqId seq, Pos length);
  bool WindowIsWhole(SeqId seq, Pos length) const;
  Pos GoBack(SeqId seq, Pos length);
  void GiveUp(SeqId seq);
  bool CopyState(SeqId seq, llama_state_seq_flags flags, std::vector<uint8_t>* state);
  bool RestoreState(SeqId seq, Pos length, std::span<const uint8_t> state, llama_state_seq_flags flags);
  llama_state_seq_flags FlagsFor(const Snapshot& snapshot) const;

  llama_context* const context_;
  const Rollback rollback_;
  const int device_snapshots_;
  const bool states_on_device_;
  std::vector<Pos> lengths_;  // by sequence
  std::vector<Undo> undo_;    // by sequence
  SnapshotStore snapshots_;
  std::vector<uint8_t> settled_;  // scratch
};

}  // namespace outrider
