// PlannedStep: a step as its costs see it: whose rows it has, beside how many of prompts, after how much text, in which
// parts it is computed, and whether it looks like the one before.
#pragma once

#include <span>
#include <vector>

#include "base/token.h"
#include "engine/engine.h"
#include "spec/policy.h"
#include "spec/step_parts.h"

namespace outrider {

// A sequence that gets its next row in a step.
struct SpeculationTurn {
  SeqId seq;
  std::span<const Token> history;
  int room;      // draft tokens that fit before max_tokens or the context's end
  int rows = 1;  // it has anyway: its next one, and tokens that are decoded again after a rollback
  std::span<const Token> underway = {};  // Engine::Underway
};

class PlannedStep {
 public:
  // `filling`: of the engine that will compute it.
  explicit PlannedStep(GapFilling filling) : filling_(filling) {}

  // Turns in the order of their sequences.
  void Begin(std::span<const SpeculationTurn> turns, int prompt_rows);

  std::span<const SpeculationTurn> turns() const { return turns_; }
  int generating() const { return static_cast<int>(turns_.size()); }
  int prompt_rows() const { return prompt_rows_; }
  int context() const { return context_; }  // mean length of the sequences

  // What can be said of it with these drafts, one for each turn, and without any.
  StepOutlook With(std::span<const SequenceOutlook> sequences) const;
  StepOutlook Plain() const { return With(plain_); }
  const std::vector<SequenceOutlook>& plain_sequences() const { return plain_; }

  // It was computed, with so many rows of a draft for each turn.
  void Done(std::span<const int> draft_rows);

  // Of the step that is done. Whether an engine that fills gaps has filled these is its own affair: then the parts are
  // not known.
  std::span<const int> parts() const { return parts_; }  // rows of each
  bool parts_known() const { return filling_ == GapFilling::kNever || Groups() == 1; }
  int alike() const { return last_.steps; }  // steps of its shape in a row

 private:
  struct Shape {
    int generating = 0, prompt_rows = 0, rows = 0;
    int steps = 0;  // in a row
  };

  int Groups() const;
  bool GapsFilled() const;

  const GapFilling filling_;
  std::vector<SpeculationTurn> turns_;
  std::vector<SequenceOutlook> plain_;  // by turn
  int prompt_rows_ = 0, context_ = 0;
  std::vector<SequenceRows> widths_;  // by turn, with its draft
  std::vector<int> parts_;
  Shape last_;  // of the last step that was done
};

}  // namespace outrider
