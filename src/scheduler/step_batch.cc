#include "scheduler/step_batch.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace outrider {
namespace {

// Where a sequence goes on at `pos`: the span that it is in or, if it is not in one, comes to next; null if there is
// none.
const MediaSpan* SpanAt(const Sequence& sequence, Pos pos) {
  for (const MediaSpan& span : sequence.generation->request().media) {
    if (pos < span.end()) return &span;
  }
  return nullptr;
}

const float* ValuesAt(const Sequence& sequence, Pos pos) {
  const MediaSpan* span = SpanAt(sequence, pos);
  return span != nullptr && pos >= span->begin ? span->rows->Row(pos - span->begin) : nullptr;
}

// How long a set keeps its turn. To apply another set costs as much time as about 0.1 ms for each layer of the model
// (docs/ADAPTERS.md), which is more than a step of a small model; large ones have other adapters in every step.
constexpr std::chrono::milliseconds kTurn{40};

// `alone`: only sequences that may have made a step fail.
bool TakesPart(const Sequence& sequence, bool alone) {
  return sequence.busy() && !sequence.resting && (!alone || sequence.suspect);
}

}  // namespace

void StepBatch::ShareRows(std::vector<Sequence>& sequences, TimePoint now) {
  entries_.clear();
  const bool alone =
      std::any_of(sequences.begin(), sequences.end(), [](const Sequence& s) { return s.busy() && s.suspect; });
  const AdapterSet adapters = ChooseAdapters(sequences, alone, now);
  batch_.Clear(adapters);
  int generating_rows = 0;
  bool others_wait = false;  // for their next token, because they have other adapters
  for (Sequence& sequence : sequences) {
    if (!TakesPart(sequence, alone)) continue;
    if (sequence.adapters != adapters) {
      others_wait = others_wait || sequence.generating();
      continue;
    }
    entries_.push_back({&sequence, Missing(sequence)});
    if (ContinuesAnswer(entries_.back())) generating_rows += entries_.back().rows;
    if (alone) break;
  }
  const EngineInfo& info = engine_.info();
  const int slice = generating_rows > 0 || others_wait ? prompt_slice_ : info.micro_batch;
  ChooseKind();
  ShareAmongPrompts(std::min(slice, info.max_batch - generating_rows));
  for (const StepEntry& entry : entries_) entry.sequence->last_step = steps_;
}

// The adapters of the step: of the sequences that could take part, the set that has waited longest, counted from the
// last step of any of its sequences. A new sequence has only waited since the last step; otherwise a set with ever new
// sequences could keep the others waiting.
AdapterSet StepBatch::ChooseAdapters(std::vector<Sequence>& sequences, bool alone, TimePoint now) {
  ++steps_;
  for (Sequence& sequence : sequences) {
    if (TakesPart(sequence, alone) && sequence.last_step == 0) sequence.last_step = steps_ - 1;
  }
  if (now - turn_began_ < kTurn && std::any_of(sequences.begin(), sequences.end(), [&](const Sequence& sequence) {
        return TakesPart(sequence, alone) && sequence.adapters == last_adapters_;
      })) {
    return last_adapters_;
  }
  const AdapterSet* chosen = nullptr;
  uint64_t chosen_last = 0;
  for (const Sequence& sequence : sequences) {
    if (!TakesPart(sequence, alone)) continue;
    if (chosen != nullptr && *chosen == sequence.adapters) continue;
    uint64_t last = 0;
    for (const Sequence& other : sequences) {
      if (TakesPart(other, alone) && other.adapters == sequence.adapters) last = std::max(last, other.last_step);
    }
    if (chosen != nullptr && last >= chosen_last) continue;
    chosen = &sequence.adapters;
    chosen_last = last;
  }
  if (chosen == nullptr) return {};
  if (*chosen == last_adapters_) return last_adapters_;
  ++adapter_switches_;
  turn_began_ = now;
  return last_adapters_ = *chosen;
}

// Decides whether this step has rows of tokens or of pictures; sequences that need the other kind wait for the next.
void StepBatch::ChooseKind() {
  const auto is_media = [&](const StepEntry& entry) {
    const MediaSpan* span = SpanAt(*entry.sequence, engine_.Length(entry.sequence->id));
    return span != nullptr && span->begin <= engine_.Length(entry.sequence->id);
  };
  const auto count = std::count_if(entries_.begin(), entries_.end(), is_media);
  const bool both = count > 0 && count < static_cast<ptrdiff_t>(entries_.size());
  if (both) media_turn_ = !media_turn_;
  media_ = both ? media_turn_ : count > 0;
  if (both) std::erase_if(entries_, [&](const StepEntry& entry) { return is_media(entry) != media_; });
}

// The next rows of a sequence that are of the kind of its next one.
int StepBatch::RowsOfKind(const Sequence& sequence) const {
  const Pos pos = engine_.Length(sequence.id);
  const MediaSpan* span = SpanAt(sequence, pos);
  if (span == nullptr) return std::numeric_limits<int>::max();
  return (span->begin <= pos ? span->end() : span->begin) - pos;
}

// Number of committed tokens that are not in memory yet.
int StepBatch::Missing(const Sequence& sequence) const {
  return static_cast<int>(sequence.tokens.size()) - engine_.Length(sequence.id);
}

// Whether the entry only needs its next row, or its next row and a few tokens again after a rollback. Otherwise it is
// treated as a prompt.
bool StepBatch::ContinuesAnswer(const StepEntry& entry) const {
  const EngineInfo& info = engine_.info();
  return entry.rows == 1 ||
         (entry.sequence->generating() && entry.rows <= std::min(prompt_slice_, info.max_batch / info.n_sequences));
}

// Reduces the rows of all prompts together to `rows`, oldest request first. Prompts that get no rows do not take part
// in this step. No prompt gets more rows than the oldest one, and only the oldest one may be cut to fit: an engine may
// compute sequences with unequal rows in several parts, and small parts are inefficient.
void StepBatch::ShareAmongPrompts(int rows) {
  prompts_.clear();
  for (StepEntry& entry : entries_) {
    if (!ContinuesAnswer(entry)) prompts_.push_back(&entry);
  }
  std::sort(prompts_.begin(), prompts_.end(),
            [](const StepEntry* a, const StepEntry* b) { return a->sequence->submitted < b->sequence->submitted; });
  for (StepEntry* entry : prompts_) {
    const int wanted = std::min(entry->rows, prompts_.front()->rows);
    entry->rows = entry == prompts_.front() ? std::min(wanted, rows) : (wanted <= rows ? wanted : 0);
    LeaveTail(*entry);
    rows -= entry->rows;
  }
  for (StepEntry& entry : entries_) entry.rows = std::min(entry.rows, RowsOfKind(*entry.sequence));
  std::erase_if(entries_, [](const StepEntry& entry) { return entry.rows == 0; });
}

// Leaves the last kTail tokens of a long prompt for the next step. A running state can only be remembered between
// steps, and the best place is shortly before the end of a prompt: requests that repeat the prompt or end it
// differently share what lies before.
void StepBatch::LeaveTail(StepEntry& entry) const {
  constexpr int kTail = 32, kWorthwhile = 256;  // tokens
  const Sequence& sequence = *entry.sequence;
  const bool ends = entry.rows == Missing(sequence) && !sequence.generating();
  const bool worthwhile = sequence.timings.prompt_tokens >= kWorthwhile && entry.rows > kTail;
  if (engine_.info().remembers && ends && worthwhile) entry.rows -= kTail;
}

bool StepBatch::MayDraft(const StepEntry& entry) const {
  const Sequence& sequence = *entry.sequence;
  return sequence.generating() && !sequence.suspect && ContinuesAnswer(entry) && entry.rows == Missing(sequence);
}

int StepBatch::room() const {
  int rows = 0;
  for (const StepEntry& entry : entries_) rows += entry.rows;
  const EngineInfo& info = engine_.info();
  return std::min(info.max_batch - rows, info.max_outputs - static_cast<int>(entries_.size()));
}

// Adds rows for the next `entry.rows` tokens that are not in memory yet, and for the draft. Logits are needed of the
// last committed token and of each draft token.
void StepBatch::AddRows(StepEntry& entry, bool wants_hidden) {
  const Sequence& sequence = *entry.sequence;
  const auto committed = static_cast<Pos>(sequence.tokens.size());
  Pos pos = engine_.Length(sequence.id);
  entry.first_row = batch_.size();
  for (const Pos end = pos + entry.rows; pos < end; ++pos) {
    const bool last = pos == committed - 1;
    const float* values = media_ ? ValuesAt(sequence, pos) : nullptr;
    const int row =
        batch_.Add({sequence.tokens[static_cast<size_t>(pos)], pos, sequence.id, last, wants_hidden, values});
    if (last) entry.logits_row = row;
  }
  for (const DraftToken& token : entry.draft) batch_.Add({token.token, pos++, sequence.id, true, wants_hidden});
}

std::span<const SequenceRows> StepBatch::ListRows() {
  rows_.clear();
  for (const StepEntry& entry : entries_) {
    rows_.push_back({entry.sequence->id, entry.rows + static_cast<int>(entry.draft.size())});
  }
  return rows_;
}

}  // namespace outrider
