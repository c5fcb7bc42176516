// PlannedStep: the step that is being planned, as far as its cost depends on it: the rows of each sequence and of each
// prompt, the mean length of the sequences, and whether the step before had the same shape. It asks the engine how the
// step will be computed (Engine::LayOut).
#pragma once

#include <span>
#include <vector>

#include "base/step_layout.h"
#include "base/token.h"
#include "engine/engine.h"
#include "spec/policy.h"

namespace outrider {

// A sequence that gets its next row in a step and may have a draft verified with it.
struct DraftableSequence {
  SeqId seq;
  std::span<const Token> history;
  int room;      // draft tokens that fit before max_tokens or the context's end
  int rows = 1;  // without a draft: its next row, and rows for tokens that are decoded again after a rollback
};

class PlannedStep {
 public:
  // `target` is the engine that computes the step.
  explicit PlannedStep(const Engine& target) : target_(target) {}

  // Both lists in ascending order of sequences. `others`: prompts, and sequences that may not have a draft.
  void Begin(std::span<const DraftableSequence> sequences, std::span<const SequenceRows> others);

  std::span<const DraftableSequence> sequences() const { return sequences_; }
  int generating() const { return static_cast<int>(sequences_.size()); }
  bool has_others() const { return !others_.empty(); }
  int context() const { return context_; }  // mean length of the draftable sequences

  // The step with these drafts, one for each draftable sequence; and without any draft.
  StepOutlook With(std::span<const SequenceOutlook> sequences) const;
  StepOutlook Plain() const { return With(plain_); }
  const std::vector<SequenceOutlook>& plain_sequences() const { return plain_; }

  // It will have so many draft rows for each draftable sequence. The engine is asked now, before it computes the step,
  // since its answer may depend on what is in memory.
  void SetDrafts(std::span<const int> draft_rows);
  const StepLayout& layout() const { return layout_; }

  // It was computed.
  void Done();
  int alike_in_a_row() const { return last_.alike; }  // steps with as many sequences and rows, this one included

 private:
  struct Shape {
    int generating = 0, other_rows = 0;
    int rows = 0;  // in all; 0 if the step was computed in several parts
    int alike = 0;
  };

  int OtherRows() const;

  const Engine& target_;
  std::vector<DraftableSequence> sequences_;
  std::vector<SequenceRows> others_;
  std::vector<SequenceOutlook> plain_;  // by draftable sequence
  int context_ = 0;
  std::vector<SequenceRows> rows_;  // with drafts
  StepLayout layout_;               // of rows_
  Shape last_;                      // of the step that was done last
};

}  // namespace outrider
