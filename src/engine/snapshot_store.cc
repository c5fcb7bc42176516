#include "engine/snapshot_store.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr Pos kLeastGap = 32;  // tokens between two kept snapshots: fewer are decoded as fast as a state is restored

}  // namespace

SnapshotStore::SnapshotStore(int n_sequences, size_t budget)
    : budget_(budget), sequences_(static_cast<size_t>(n_sequences)) {}

Snapshot* SnapshotStore::BeforeDraft(SeqId seq, Pos length) {
  Sequence& sequence = SequenceOf(seq);
  Snapshot& snapshot = sequence.before_draft;
  if (snapshot.life == sequence.life && snapshot.length == length) return nullptr;
  snapshot.seq = seq;
  snapshot.length = length;
  snapshot.life = sequence.life;
  return &snapshot;
}

void SnapshotStore::DropBeforeDraft(SeqId seq) {
  SequenceOf(seq).before_draft.life = 0;
}

bool SnapshotStore::WorthKeeping(SeqId seq, Pos length, size_t bytes) const {
  const Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  const Pos last = sequence.kept.empty() ? 0 : sequence.kept.back().length;
  return bytes <= budget_ && length >= last + kLeastGap;
}

void SnapshotStore::Keep(SeqId seq, Pos length, std::vector<uint8_t> state) {
  Sequence& sequence = SequenceOf(seq);
  kept_bytes_ += state.size();
  sequence.kept.push_back({seq, length, sequence.life, std::move(state)});
  while (kept_bytes_ > budget_) DropCheapest();
}

// The one whose loss costs the fewest tokens: those between the one before it and itself would be decoded again.
void SnapshotStore::DropCheapest() {
  std::vector<Snapshot>* where = nullptr;
  std::ptrdiff_t which = 0;
  Pos least = 0;
  for (Sequence& sequence : sequences_) {
    Pos before = 0;
    for (size_t i = 0; i < sequence.kept.size(); ++i) {
      const Pos saved = sequence.kept[i].length - before;
      before = sequence.kept[i].length;
      if (where != nullptr && saved >= least) continue;
      where = &sequence.kept;
      which = static_cast<std::ptrdiff_t>(i);
      least = saved;
    }
  }
  const auto victim = where->begin() + which;
  kept_bytes_ -= victim->state.size();
  where->erase(victim);
}

const Snapshot* SnapshotStore::Latest(SeqId seq, Pos length) const {
  const Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  const Snapshot* latest = nullptr;
  for (const Snapshot& snapshot : sequence.kept) {
    if (snapshot.length <= length) latest = &snapshot;
  }
  const Snapshot& draft = sequence.before_draft;
  const bool usable = draft.life == sequence.life && draft.length <= length;
  return usable && (latest == nullptr || draft.length >= latest->length) ? &draft : latest;
}

bool SnapshotStore::IsBeforeDraft(const Snapshot& snapshot) const {
  return &snapshot == &sequences_[static_cast<size_t>(snapshot.seq)].before_draft;
}

void SnapshotStore::Cut(SeqId seq, Pos length) {
  Sequence& sequence = SequenceOf(seq);
  if (sequence.before_draft.length > length) sequence.before_draft.life = 0;
  while (!sequence.kept.empty() && sequence.kept.back().length > length) {
    kept_bytes_ -= sequence.kept.back().state.size();
    sequence.kept.pop_back();
  }
}

void SnapshotStore::BeginLife(SeqId seq) {
  Cut(seq, 0);
  ++SequenceOf(seq).life;
}

}  // namespace outrider
