// StepSplit: how libllama cuts a batch into the parts (its micro-batches) that it computes one after the other. The
// only place that knows this rule; it follows llama_batch_allocr (split_simple, split_equal), and
// engine/llama/layout_test compares it with what libllama really computes. LlamaEngine answers with it; simulations and
// tests that imitate such an engine use it too. Pure, so it is in this room and not beside libllama.
//
// If each sequence has a memory of its own, a part has the same number of rows of each of its sequences, which have
// consecutive ids; a sequence with more rows is continued in a later part. If sequences share one memory, a part ends
// when it is full.
#pragma once

#include <span>
#include <vector>

#include "base/step_layout.h"

namespace outrider {

class StepSplit {
 public:
  // Consecutive rows of one sequence of a step.
  struct Slice {
    size_t sequence;  // index into the step
    int first_row;    // of that sequence
    int rows;
  };
  using Part = std::vector<Slice>;  // in ascending order of sequences

  // `max_rows`: of a part. `kept_tail`: a sequence is not cut within its last `kept_tail` rows (for models whose
  // backend keeps states for the last rows of a batch); 0 = it may be cut anywhere.
  StepSplit(int max_rows, bool shared_memory, int kept_tail)
      : max_rows_(max_rows), shared_memory_(shared_memory), kept_tail_(kept_tail) {}

  // The parts of `step`, valid until the next call.
  std::span<const Part> Cut(std::span<const SequenceRows> step);

 private:
  void CutWhereFull(std::span<const SequenceRows> step);
  void CutEqually(std::span<const SequenceRows> step);
  size_t Neighbours(std::span<const SequenceRows> step, size_t first) const;
  Part& NextPart();

  const int max_rows_;
  const bool shared_memory_;
  const int kept_tail_;
  std::vector<int> done_;  // rows of each sequence that are in a part already
  std::vector<Part> parts_;
  size_t n_parts_ = 0;  // parts_ keeps its memory from step to step
};

int RowsOf(const StepSplit::Part& part);

// The max number of gaps that are worth filling. A step of `rows` sequences with one row each, whose ids are not
// consecutive, is computed in one part if the idle sequences in between get a row too. `rows_are_cheap`: on a device,
// where an additional row costs almost nothing.
int MaxGapsToFill(int rows, bool rows_are_cheap);

// Whether the rows of the parts, one part after the other, are in the order of the batch.
bool InBatchOrder(std::span<const StepSplit::Part> parts);

}  // namespace outrider
