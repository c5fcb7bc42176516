#include "engine/snapshot_store.h"

#include <utility>

namespace outrider {
namespace {

constexpr Pos kMinGap = 32;  // tokens between two kept snapshots: fewer are decoded as fast as a state is restored

}  // namespace

SnapshotStore::SnapshotStore(int n_sequences, size_t budget)
    : share_(budget / static_cast<size_t>(n_sequences)), sequences_(static_cast<size_t>(n_sequences)) {}

Snapshot* SnapshotStore::BeforeDraft(SeqId seq, Pos length) {
  Sequence& sequence = SequenceOf(seq);
  Snapshot& snapshot = sequence.before_draft;
  if (snapshot.epoch == sequence.epoch && snapshot.length == length) return nullptr;
  snapshot.seq = seq;
  snapshot.length = length;
  snapshot.epoch = sequence.epoch;
  return &snapshot;
}

void SnapshotStore::DropBeforeDraft(SeqId seq) {
  SequenceOf(seq).before_draft.epoch = 0;
}

// False also if the new snapshot would be the next one to be dropped.
bool SnapshotStore::WorthKeeping(SeqId seq, Pos length, size_t bytes) const {
  const Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  const Pos last = sequence.kept.empty() ? 0 : sequence.kept.back().length;
  if (bytes > share_ || length < last + kMinGap) return false;
  return sequence.kept_bytes + bytes <= share_ || CheapestOf(sequence).saved <= length - last;
}

void SnapshotStore::Keep(SeqId seq, Pos length, std::vector<uint8_t> state) {
  Sequence& sequence = SequenceOf(seq);
  sequence.kept_bytes += state.size();
  sequence.kept.push_back({seq, length, sequence.epoch, std::move(state)});
  while (sequence.kept_bytes > share_) {
    const auto cheapest = sequence.kept.begin() + CheapestOf(sequence).place;
    sequence.kept_bytes -= cheapest->state.size();
    sequence.kept.erase(cheapest);
  }
}

// The value of a snapshot is the number of tokens between the snapshot before it and itself: without it they would be
// decoded again.
SnapshotStore::Cheapest SnapshotStore::CheapestOf(const Sequence& sequence) {
  Cheapest cheapest;
  Pos before = 0;
  for (size_t i = 0; i < sequence.kept.size(); ++i) {
    const Pos saved = sequence.kept[i].length - std::exchange(before, sequence.kept[i].length);
    if (saved < cheapest.saved) cheapest = {static_cast<std::ptrdiff_t>(i), saved};
  }
  return cheapest;
}

size_t SnapshotStore::kept_bytes() const {
  size_t bytes = 0;
  for (const Sequence& sequence : sequences_) bytes += sequence.kept_bytes;
  return bytes;
}

const Snapshot* SnapshotStore::Latest(SeqId seq, Pos length) const {
  const Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  const Snapshot* latest = nullptr;
  for (const Snapshot& snapshot : sequence.kept) {
    if (snapshot.length <= length) latest = &snapshot;
  }
  const Snapshot& draft = sequence.before_draft;
  const bool usable = draft.epoch == sequence.epoch && draft.length <= length;
  return usable && (latest == nullptr || draft.length >= latest->length) ? &draft : latest;
}

bool SnapshotStore::IsBeforeDraft(const Snapshot& snapshot) const {
  return &snapshot == &sequences_[static_cast<size_t>(snapshot.seq)].before_draft;
}

void SnapshotStore::Cut(SeqId seq, Pos length) {
  Sequence& sequence = SequenceOf(seq);
  if (sequence.before_draft.length > length) sequence.before_draft.epoch = 0;
  while (!sequence.kept.empty() && sequence.kept.back().length > length) {
    sequence.kept_bytes -= sequence.kept.back().state.size();
    sequence.kept.pop_back();
  }
}

void SnapshotStore::BeginEpoch(SeqId seq) {
  Cut(seq, 0);
  ++SequenceOf(seq).epoch;
}

}  // namespace outrider
