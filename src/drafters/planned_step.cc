#include "drafters/planned_step.h"

namespace outrider {

void PlannedStep::Begin(std::span<const SpeculationTurn> turns, int prompt_rows) {
  turns_.assign(turns.begin(), turns.end());
  prompt_rows_ = prompt_rows;
  plain_.clear();
  size_t tokens = 0;
  for (const SpeculationTurn& turn : turns) {
    plain_.push_back({turn.rows, {}});
    tokens += turn.history.size();
  }
  if (!turns.empty()) context_ = static_cast<int>(tokens / turns.size());
}

StepOutlook PlannedStep::With(std::span<const SequenceOutlook> sequences) const {
  const bool same_make_up = last_.generating == generating() && last_.prompt_rows == prompt_rows_;
  const int groups = Groups();
  return {sequences, prompt_rows_, context_, same_make_up ? last_.rows : 0, groups, GapsFilled() ? 1 : groups};
}

void PlannedStep::Done(std::span<const int> draft_rows) {
  const StepOutlook plain = Plain();
  int rows = plain.fixed_rows();
  widths_.clear();
  for (size_t i = 0; i < turns_.size(); ++i) {
    rows += draft_rows[i];
    widths_.push_back({turns_[i].seq, turns_[i].rows + draft_rows[i]});
  }
  ListParts(widths_, &parts_);
  const int in_a_row = rows == plain.last_rows ? last_.steps + 1 : 1;
  last_ = {generating(), prompt_rows_, parts_.size() == 1 ? rows : 0, in_a_row};
}

int PlannedStep::Groups() const {
  int groups = 1;
  for (size_t i = 1; i < turns_.size(); ++i) groups += turns_[i].seq != turns_[i - 1].seq + 1 ? 1 : 0;
  return groups;
}

bool PlannedStep::GapsFilled() const {
  const int span = turns_.empty() ? 0 : turns_.back().seq - turns_.front().seq + 1;
  return FillsGaps(filling_, generating(), span - generating());
}

}  // namespace outrider
