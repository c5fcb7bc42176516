// SnapshotStore: keeps snapshots of running states, to which a sequence can go back, and decides which of them to keep.
//
// A sequence has at most one snapshot from before its draft, which the next one replaces, and any number of snapshots
// that are kept for later requests: a follow-up request that shares a part of the prompt goes back to the last snapshot
// within that part. Each sequence has an equal share of the memory for these. When the share is used up, the snapshot
// that saves the fewest tokens is dropped, so that the others are spread over long prompts.
//
// A snapshot belongs to a sequence, a length and an epoch of that sequence, which ends when its memory is cleared or
// replaced; then its snapshots are not found any more. When a memory is cut, the snapshots past its end are dropped.
//
// Pure bookkeeping; only the engine knows what a state consists of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/token.h"

namespace outrider {

struct Snapshot {
  SeqId seq = -1;
  Pos length = 0;      // tokens the state stands for
  uint64_t epoch = 0;  // of its sequence; 0 = of none
  std::vector<uint8_t> state;
};

class SnapshotStore {
 public:
  // `budget`: bytes for all kept snapshots; those before drafts are not counted.
  SnapshotStore(int n_sequences, size_t budget);

  // The snapshot before a draft of `seq`, to be filled with its state at `length`; nullptr if there is one already.
  Snapshot* BeforeDraft(SeqId seq, Pos length);
  void DropBeforeDraft(SeqId seq);  // its state could not be copied

  // Whether a snapshot of `bytes` at `length` should be taken to be kept.
  bool WorthKeeping(SeqId seq, Pos length, size_t bytes) const;
  void Keep(SeqId seq, Pos length, std::vector<uint8_t> state);

  bool IsBeforeDraft(const Snapshot& snapshot) const;

  // The longest snapshot of `seq` that is no longer than `length`; nullptr if there is none.
  const Snapshot* Latest(SeqId seq, Pos length) const;

  // The memory of `seq` was cut to `length` tokens.
  void Cut(SeqId seq, Pos length);

  // The memory of `seq` was cleared or replaced.
  void BeginEpoch(SeqId seq);

  size_t kept_bytes() const;  // over all sequences

 private:
  struct Sequence {
    uint64_t epoch = 1;
    Snapshot before_draft;       // in use if its epoch is the sequence's
    std::vector<Snapshot> kept;  // of this epoch, ascending in length
    size_t kept_bytes = 0;
  };

  // The kept snapshot whose loss costs the fewest tokens.
  struct Cheapest {
    std::ptrdiff_t place = 0;
    Pos saved = std::numeric_limits<Pos>::max();
  };

  Sequence& SequenceOf(SeqId seq) { return sequences_[static_cast<size_t>(seq)]; }
  static Cheapest CheapestOf(const Sequence& sequence);

  const size_t share_;  // bytes for each sequence
  std::vector<Sequence> sequences_;
};

}  // namespace outrider
