// PaddedEngine: makes logits independent of the shape of the batch, on top of an engine whose logits depend on it (on
// most devices kernels differ by the number of rows).
//
// Every row is computed in a batch of the same shape: only rows of one sequence, padded to a fixed number of rows; all
// of them ask for logits or none does, and the same for hidden states. Engines read their memory in blocks, and the
// number of blocks also decides how sums are split; so rows for which this number differs never share a batch. Then the
// kernels that compute a row depend only on its position.
//
// The price is speed: sequences are decoded one after the other, and prompts in small pieces. Padding needs a memory
// that can drop single tokens.
#pragma once

#include <span>

#include "engine/engine.h"
#include "engine/row_values.h"

namespace outrider {

class PaddedEngine : public Engine {
 public:
  static constexpr int kRows = 8;  // where wider batches begin to cost on a GPU

  // Each sequence of `engine` gives up `rows` tokens of its length to the padding.
  explicit PaddedEngine(Engine& engine, int rows = kRows);

  const EngineInfo& info() const override { return info_; }
  Status Decode(const Batch& batch) override;
  std::span<const float> Logits(int row) override;
  Status ProvideHidden(std::span<const int> layers) override { return engine_.ProvideHidden(layers); }
  std::span<const float> Hidden(int row) override;
  void LayOut(std::span<const SequenceRows> step, StepLayout* layout) const override;
  Pos Length(SeqId seq) const override { return engine_.Length(seq); }
  Pos TruncateTo(SeqId seq, Pos length) override { return engine_.TruncateTo(seq, length); }
  Pos TruncatedLength(SeqId seq, Pos length) const override { return engine_.TruncatedLength(seq, length); }
  Result<std::vector<uint8_t>> SaveSequence(SeqId seq) override { return engine_.SaveSequence(seq); }
  Status RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) override;

 private:
  int PartLength(Pos pos, int rows) const;
  Status DecodePart(std::span<const BatchRow> rows, int first_row);

  Engine& engine_;
  const int rows_;
  EngineInfo info_;
  Batch part_;
  RowValues logits_, hidden_;
};

}  // namespace outrider
