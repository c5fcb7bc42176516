// Engine: a model with memory for several sequences, seen as a function from rows to logits.
//
// Decode() appends rows to the memory of their sequences and computes logits for those that asked. TruncateTo() takes
// rows back. How an engine does either (attention cells, recurrent state, snapshots) is not part of the interface;
// callers only rely on this:
//
//   - The memory of a sequence is the tokens 0 .. Length(seq) - 1, each position exactly once.
//   - Rows of one sequence in a batch are consecutive, begin at Length(seq), and stand in ascending order; sequences of
//     a batch stand in ascending order of their id.
//   - A batch has rows of tokens or rows of values (BatchRow::values), not both.
//   - Logits and hidden states of a row depend on the tokens up to that row only: not on the width of the batch, on
//     other sequences, or on how the tokens before were cut into batches. Engines for which that does not hold say so
//     in info().exactness.
//   - All rows of a batch are computed with the batch's adapters, and so are all tokens in the memory of a sequence: a
//     caller that wants others for it empties the memory first.
//
// Memory that holds a running state (recurrent and hybrid models) cannot drop single tokens. Its engine goes back to a
// state that it has kept, and the caller says when to keep one: SaveState() before rows that may be rejected,
// Remember() at a place from which another request may continue.
//
// Not thread-safe: one thread at a time drives an engine. Different engines (a target and its draft model) are
// independent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/step_layout.h"
#include "base/token.h"
#include "engine/batch.h"

namespace outrider {

// How tokens are taken back.
enum class Rollback {
  kDropCells,        // each token has memory of its own, which is dropped
  kDeviceSnapshots,  // a running state: the backend also keeps the states after the last few rows
  kReplay,           // a running state: an earlier one is restored, and the tokens since are decoded again
  kNone,             // a running state that can only be cleared
};

// Whether the engine goes back to states it kept.
constexpr bool KeepsStates(Rollback rollback) {
  return rollback == Rollback::kDeviceSnapshots || rollback == Rollback::kReplay;
}

struct EngineInfo {
  int n_vocab = 0;
  int n_sequences = 0;      // sequences the memory has room for
  Pos sequence_length = 0;  // tokens each sequence has room for
  int max_batch = 0;        // rows one Decode takes
  int micro_batch = 0;      // rows computed at once: a wider batch takes as long as several of these
  int max_outputs = 0;      // rows of one Decode that may want logits
  Pos memory_block = 0;     // attention reads the memory in blocks of so many tokens; 0 = token by token
  Rollback rollback = Rollback::kDropCells;
  int device_snapshots = 0;  // kDeviceSnapshots: rows of the last batch that may be taken back without a saved state
  bool remembers = false;    // a running state: there is memory for the states that Remember() keeps
  std::string exactness;     // "" if logits do not depend on the batch's shape; else a sentence that says why they may
  int n_adapters = 0;        // adapters that batches may use; their ids are 0 … n_adapters - 1
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;

  // After an error the memory of the sequences in the batch is unspecified until TruncateTo(seq, 0); other sequences
  // are unchanged.
  virtual Status Decode(const Batch& batch) = 0;

  // Logits (n_vocab of them) of row `row` of the last batch, which must have asked for them. Valid until the next
  // Decode.
  virtual std::span<const float> Logits(int row) = 0;

  // Hidden states are what layers of the model get as their input, for drafters that read the target; the layer after
  // the last one stands for the state from which the model's own heads go on. From now on rows may ask for those of
  // `layers` (BatchRow::wants_hidden). kUnsupported if this model or engine cannot give them, or
  // gives those of other layers already; then nothing changes.
  virtual Status ProvideHidden(std::span<const int> layers) = 0;

  // Hidden states of row `row` of the last batch, which must have asked for them: those of each layer, in the order of
  // ProvideHidden. Valid until the next Decode.
  virtual std::span<const float> Hidden(int row) = 0;

  // How a step with these rows would be computed now. `step` is in ascending order of sequences.
  virtual void LayOut(std::span<const SequenceRows> step, StepLayout* layout) const = 0;

  // Tokens in the memory of `seq`.
  virtual Pos Length(SeqId seq) const = 0;

  // Shortens the memory of `seq` to at most `length` tokens and returns what is left. That is `length` wherever the
  // memory can drop single tokens; a running state may have to fall back to an earlier one, down to 0. The caller
  // decodes the tokens between the two again, as the first rows of that sequence's next batch.
  virtual Pos TruncateTo(SeqId seq, Pos length) = 0;

  // What TruncateTo(seq, length) would return.
  virtual Pos TruncatedLength(SeqId seq, Pos length) const { return std::min(length, Length(seq)); }

  // Saves the present state of `seq`, because the next rows are a draft: if they are rejected, TruncateTo can go back
  // to the present length. Replaces the state that was saved last.
  virtual void SaveState(SeqId /*seq*/) {}

  // Later requests may share the tokens that are in memory now, so TruncateTo should be able to go back to this length.
  // The engine may forget some of these states when its memory for them is full.
  virtual void Remember(SeqId /*seq*/) {}

  // The memory of one sequence as bytes, and back (for /slots save and restore). Restoring replaces what was there; on
  // error the sequence is empty. The bytes do not say with which adapters they were computed; the caller knows. Only
  // bytes from SaveSequence of the same model and settings are accepted.
  virtual Result<std::vector<uint8_t>> SaveSequence(SeqId seq) = 0;
  virtual Status RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) = 0;
};

}  // namespace outrider
