#include "drafters/planned_step.h"

#include <algorithm>

namespace outrider {

void PlannedStep::Begin(std::span<const DraftableSequence> sequences, std::span<const SequenceRows> others) {
  sequences_.assign(sequences.begin(), sequences.end());
  others_.assign(others.begin(), others.end());
  plain_.clear();
  size_t tokens = 0;
  for (const DraftableSequence& sequence : sequences) {
    plain_.push_back({sequence.seq, sequence.rows});
    tokens += sequence.history.size();
  }
  if (!sequences.empty()) context_ = static_cast<int>(tokens / sequences.size());
}

int PlannedStep::OtherRows() const {
  int rows = 0;
  for (const SequenceRows& other : others_) rows += other.rows;
  return rows;
}

StepOutlook PlannedStep::With(std::span<const SequenceOutlook> sequences) const {
  const bool same_sequences = last_.generating == generating() && last_.other_rows == OtherRows();
  return {sequences, others_, context_, same_sequences ? last_.rows : 0, {}};
}

void PlannedStep::SetDrafts(std::span<const int> draft_rows) {
  rows_ = others_;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    rows_.push_back({sequences_[i].seq, sequences_[i].rows + draft_rows[i]});
  }
  std::sort(rows_.begin(), rows_.end(), [](const SequenceRows& a, const SequenceRows& b) { return a.seq < b.seq; });
  target_.LayOut(rows_, &layout_);
}

void PlannedStep::Done() {
  int rows = 0;
  for (const SequenceRows& sequence : rows_) rows += sequence.rows;
  const int alike = rows == Plain().last_rows ? last_.alike + 1 : 1;
  last_ = {generating(), OtherRows(), layout_.parts.size() == 1 ? rows : 0, alike};
}

}  // namespace outrider
