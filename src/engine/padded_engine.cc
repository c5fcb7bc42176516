#include "engine/padded_engine.h"

#include <algorithm>
#include <cassert>

namespace outrider {

PaddedEngine::PaddedEngine(Engine& engine, int rows)
    : engine_(engine),
      rows_(std::min({rows, engine.info().max_batch, engine.info().micro_batch, engine.info().max_outputs})),
      info_(engine.info()) {
  assert(info_.rollback == Rollback::kDropCells && "padding could not be taken back");
  info_.sequence_length -= rows_;
  info_.micro_batch = rows_;
  info_.exactness.clear();
}

Status PaddedEngine::Decode(const Batch& batch) {
  logits_.Reset(batch.size());
  hidden_.Reset(batch.size());
  for (std::span<const BatchRow> rest = batch.rows(); !rest.empty();) {
    const auto of_sequence =
        std::find_if(rest.begin(), rest.end(), [&](const BatchRow& r) { return r.seq != rest[0].seq; });
    const int length = PartLength(rest[0].pos, static_cast<int>(of_sequence - rest.begin()));
    const auto part = rest.first(static_cast<size_t>(length));
    part_.Clear(batch.adapters());
    if (Status status = DecodePart(part, batch.size() - static_cast<int>(rest.size())); !status.ok()) return status;
    rest = rest.subspan(part.size());
  }
  return {};
}

void PaddedEngine::LayOut(std::span<const SequenceRows> step, StepLayout* layout) const {
  layout->parts.clear();
  layout->free_rollback = StepLayout::kAllRows;
  for (const SequenceRows& sequence : step) {
    for (int done = 0; done < sequence.rows; done += PartLength(Length(sequence.seq) + done, sequence.rows - done)) {
      layout->parts.push_back(rows_);
    }
  }
}

// How many of the next `rows` rows of a sequence, the first of which is at `pos`, are computed in one part: as many as
// fit, and only rows that use the same number of memory blocks as they would use as the first row of a part.
int PaddedEngine::PartLength(Pos pos, int rows) const {
  const Pos block = std::max(1, info_.memory_block);
  const auto blocks = [&](Pos first) { return (first + rows_ - 1) / block; };  // padding included
  int length = 1;
  while (length < rows_ && length < rows && blocks(pos + length) == blocks(pos)) ++length;
  return length;
}

// `first_row`: the index in the batch of the first of these rows. `part_` is empty.
Status PaddedEngine::DecodePart(std::span<const BatchRow> rows, int first_row) {
  const bool wants_logits = std::any_of(rows.begin(), rows.end(), [](const BatchRow& row) { return row.wants_logits; });
  const bool wants_hidden = std::any_of(rows.begin(), rows.end(), [](const BatchRow& row) { return row.wants_hidden; });
  for (BatchRow row : rows) {
    row.wants_logits = wants_logits;
    row.wants_hidden = wants_hidden;
    part_.Add(row);
  }
  while (part_.size() < rows_) {
    const Pos pos = rows[0].pos + part_.size();
    part_.Add({rows[0].token, pos, rows[0].seq, wants_logits, wants_hidden, rows[0].values});
  }
  if (Status status = engine_.Decode(part_); !status.ok()) return status;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<int>(i);
    if (rows[i].wants_logits) logits_.Add(first_row + row, engine_.Logits(row));
    if (rows[i].wants_hidden) hidden_.Add(first_row + row, engine_.Hidden(row));
  }
  const Pos end = rows.back().pos + 1;
  return engine_.TruncateTo(rows[0].seq, end) == end ? Status() : Internal("padding could not be taken back");
}

std::span<const float> PaddedEngine::Logits(int row) {
  return logits_.Of(row);
}

std::span<const float> PaddedEngine::Hidden(int row) {
  return hidden_.Of(row);
}

Status PaddedEngine::RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) {
  if (length > info_.sequence_length) {
    engine_.TruncateTo(seq, 0);
    return InvalidArgument("the saved state is longer than the context");
  }
  return engine_.RestoreSequence(seq, state, length);
}

}  // namespace outrider
