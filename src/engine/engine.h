// Engine: a model with memory for several sequences, seen as a function from rows to logits.
//
// Decode() appends rows to the memory of their sequences and computes logits for those that asked. TruncateTo() takes
// rows back. How an engine does either (attention cells, recurrent state, snapshots) is its own business; the caller
// only relies on this:
//
//   - The memory of a sequence is the tokens 0 .. Length(seq) - 1, each position exactly once.
//   - Rows of one sequence in a batch are consecutive, begin at Length(seq), and stand in ascending order; sequences of
//     a batch stand in ascending order of their id (libllama splits the batch otherwise).
//   - Logits of a row depend on the tokens up to that row only: not on the width of the batch, on other sequences, or
//     on how the tokens before were cut into batches. Engines for which that does not hold say so in info().exactness.
//
// Memory that holds a running state (recurrent and hybrid models) cannot drop single tokens. Its engine goes back to
// states it kept, and the caller tells it when one will be needed: SaveState() before rows that may turn out wrong,
// Remember() where another request may branch off.
//
// Not thread-safe: one thread at a time drives an engine. Different engines (a target and its draft model) are
// independent.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "engine/batch.h"

namespace outrider {

// How tokens are taken back.
enum class Rollback {
  kDropCells,        // each token has memory of its own, which is dropped
  kDeviceSnapshots,  // a running state: those after the last few rows are kept beside it by the backend
  kReplay,           // a running state: an earlier one is restored, and the tokens since are decoded again
  kNone,             // a running state that can only be given up
};

// Whether the engine goes back to states it kept.
constexpr bool KeepsStates(Rollback rollback) {
  return rollback == Rollback::kDeviceSnapshots || rollback == Rollback::kReplay;
}

// Sequences are computed together if their ids are consecutive, else one part after the other. Where a row costs less
// than another part, an engine fills the gaps between sequences of one row each with rows of idle ones, of which it
// keeps nothing.
enum class GapFilling { kNever, kFew, kMost };

inline bool FillsGaps(GapFilling filling, int sequences, int gaps) {
  if (gaps == 0 || filling == GapFilling::kNever) return false;
  return filling == GapFilling::kMost ? gaps < sequences : 2 * gaps < sequences;
}

struct EngineInfo {
  int n_vocab = 0;
  int n_sequences = 0;      // sequences the memory has room for
  Pos sequence_length = 0;  // tokens each sequence has room for
  int max_batch = 0;        // rows one Decode takes
  int micro_batch = 0;      // rows computed at once: a wider batch takes as long as several of these
  int max_outputs = 0;      // rows of one Decode that may want logits
  Rollback rollback = Rollback::kDropCells;
  GapFilling gap_filling = GapFilling::kNever;
  int device_snapshots = 0;  // kDeviceSnapshots: rows of the last batch that may be taken back without a saved state
  bool remembers = false;    // a running state: Remember() has memory to keep some
  std::string
      exactness;  // "" if logits are independent of the batch's shape; else one sentence saying why they may not be
};

// What `seq` may go on with after its rows in the batch that is being decoded, as far as the caller can tell by now.
using Foresight = std::function<void(SeqId seq, std::vector<Token>* ahead)>;

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;

  // All or nothing for the caller: after an error the memory of the sequences in the batch is unspecified until
  // TruncateTo(seq, 0); other sequences are as before.
  virtual Status Decode(const Batch& batch) = 0;

  // Logits (n_vocab of them) of row `row` of the last batch, which must have asked for them. Valid until the next
  // Decode.
  virtual std::span<const float> Logits(int row) = 0;

  // Tokens in the memory of `seq`.
  virtual Pos Length(SeqId seq) const = 0;

  // Shortens the memory of `seq` to at most `length` tokens and returns what is left. That is `length` wherever the
  // memory can drop single tokens; a running state may have to fall back to an earlier one, down to 0. The caller
  // decodes the tokens between the two again, as the first rows of that sequence's next batch.
  virtual Pos TruncateTo(SeqId seq, Pos length) = 0;

  // What TruncateTo(seq, length) would return.
  virtual Pos TruncatedLength(SeqId seq, Pos length) const { return std::min(length, Length(seq)); }

  // How many of the last rows of each sequence TruncateTo can take back, once, after `batch` was decoded and before
  // another one is; never the first.
  virtual int FreeRollback(const Batch& /*batch*/) const { return std::numeric_limits<int>::max(); }

  // Rows of `seq` to come are guesses: TruncateTo will not have to fall back behind the present length if they are
  // wrong. Replaces the state saved last.
  virtual void SaveState(SeqId /*seq*/) {}

  // Requests to come may share the tokens in memory now: TruncateTo should be able to come back here later. Which of
  // these places are kept is up to the engine's memory for them.
  virtual void Remember(SeqId /*seq*/) {}

  // An engine with hardware to spare begins with rows before they are asked for. It calls `foresight` from within
  // Decode.
  virtual void SetForesight(Foresight /*foresight*/) {}

  // The last token of `text` and what may follow, as far as their rows are begun and so will be there sooner than
  // others. Valid until the next Decode.
  virtual std::span<const Token> Underway(SeqId /*seq*/, std::span<const Token> /*text*/) const { return {}; }

  // Whether the rows of the last Decode had been begun before it.
  virtual bool WasUnderway() const { return false; }

  // The memory of one sequence as bytes, and back (for /slots save and restore). Restoring replaces what was there; on
  // error the sequence is empty. Only bytes from SaveSequence of the same model and settings are accepted.
  virtual Result<std::vector<uint8_t>> SaveSequence(SeqId seq) = 0;
  virtual Status RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) = 0;
};

}  // namespace outrider
