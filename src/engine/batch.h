// Batch: the rows of one engine step. A row is one token at one position of one sequence, or the numbers that stand
// there instead (engine/media.h); the logits and hidden states that it asks for can be read after the step. All rows of
// a step are computed with the same adapters. Reused from step to step so that the loop does not allocate.
#pragma once

#include <vector>

#include "base/adapter_set.h"
#include "base/token.h"

namespace outrider {

struct BatchRow {
  Token token;
  Pos pos;
  SeqId seq;
  bool wants_logits;
  bool wants_hidden = false;      // only after Engine::ProvideHidden
  const float* values = nullptr;  // what is read instead of the token; all rows of a batch have some, or none has

  bool operator==(const BatchRow&) const = default;
};

class Batch {
 public:
  // Removes the rows. Those that are added from now on are computed with `adapters`.
  void Clear(const AdapterSet& adapters = {}) {
    rows_.clear();
    adapters_ = adapters;
  }

  // Returns the row's index, which Engine::Logits and Engine::Hidden take.
  int Add(BatchRow row) {
    rows_.push_back(row);
    return static_cast<int>(rows_.size()) - 1;
  }

  int size() const { return static_cast<int>(rows_.size()); }
  bool empty() const { return rows_.empty(); }
  const std::vector<BatchRow>& rows() const { return rows_; }
  const AdapterSet& adapters() const { return adapters_; }

 private:
  AdapterSet adapters_;
  std::vector<BatchRow> rows_;
};

}  // namespace outrider
