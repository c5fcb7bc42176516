// StepLayout: how an engine computes a step, that is, which rows it computes at once and which of them it can take back
// at no cost.
//
// Only an engine knows that (Engine::LayOut). Whoever prices a step, or decides whether a state must be saved before
// it, asks the engine and assumes nothing: batches are split, padded and shaped differently by every backend.
#pragma once

#include <limits>
#include <vector>

#include "base/token.h"

namespace outrider {

// What one sequence has in a planned step: `rows` rows (at least one) that follow the tokens in its memory.
struct SequenceRows {
  SeqId seq;
  int rows;
};

struct StepLayout {
  static constexpr int kAllRows = std::numeric_limits<int>::max();

  // Rows of each part, padding included. Rows of a part are computed at once, and the parts one after the other.
  std::vector<int> parts;

  // Whether the step would be computed in exactly these parts. If not, they are an estimate: they may be used to choose
  // a step, but the measured time of the step says nothing about its parts. True unless an engine says otherwise.
  bool certain = true;

  // How many rows at the end of each sequence TruncateTo can take back without a saved state; never its first row.
  int free_rollback = kAllRows;

  // Whether the state of a sequence must be saved before a draft of `drafted` tokens is decoded, because they could not
  // all be taken back otherwise.
  bool NeedsSavedState(int drafted) const { return drafted > free_rollback; }
};

}  // namespace outrider
