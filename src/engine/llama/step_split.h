// StepSplit: how libllama cuts a batch into the parts (its micro-batches) that it computes one after the other. The
// only place that knows this rule; it follows llama_batch_allocr (split_simple, split_equal), and llama_engine_test
// compares it with what libllama really computes.
//
// Where each sequence has a memory of its own, a part has equally many rows of sequences with consecutive ids; a
// sequence that has more rows goes on in a later part. Where sequences share one memory, a batch is cut where a part is
// full.
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

  // `max_rows`: of a part. `kept_tail`: a sequence is not cut within its last so many rows (models whose backend keeps
  // states for the last rows of a batch); 0 = anywhere.
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

// A step of `rows` sequences with a row each, whose ids are not consecutive, is computed in one part if idle sequences
// in between get a row too. For how many gaps that is worth it: a row costs next to nothing on a device
// (`rows_are_cheap`).
int MaxGapsToFill(int rows, bool rows_are_cheap);

// Whether the rows of the parts, one part after the other, are in the order of the batch.
bool InBatchOrder(std::span<const StepSplit::Part> parts);

}  // namespace outrider
