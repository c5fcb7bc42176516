#include "engine/padded_engine.h"

#include <algorithm>
#include <cassert>

namespace outrider {

PaddedEngine::PaddedEngine(Engine& engine, int rows, Pos memory_block)
    : engine_(engine),
      rows_(std::min({rows, engine.info().max_batch, engine.info().micro_batch, engine.info().max_outputs})),
      memory_block_(memory_block),
      info_(engine.info()) {
  assert(info_.rollback == Rollback::kDropCells && "padding could not be taken back");
  info_.sequence_length -= rows_;
  info_.micro_batch = rows_;
  info_.exactness.clear();
  info_.gap_filling = GapFilling::kNever;  // sequences are decoded one after the other
}

Status PaddedEngine::Decode(const Batch& batch) {
  logits_.clear();
  logits_of_.clear();
  for (std::span<const BatchRow> rest = batch.rows(); !rest.empty();) {
    const auto part = rest.first(static_cast<size_t>(PartLength(rest)));
    if (Status status = DecodePart(part); !status.ok()) return status;
    rest = rest.subspan(part.size());
  }
  return {};
}

// How many of the first rows are of one sequence, fit, and see as many blocks of memory as each would as the first row.
int PaddedEngine::PartLength(std::span<const BatchRow> rest) const {
  const auto blocks = [this](Pos first) { return (first + rows_ - 1) / memory_block_; };  // padding included
  int length = 1;
  for (; length < rows_ && length < static_cast<int>(rest.size()); ++length) {
    const BatchRow& row = rest[static_cast<size_t>(length)];
    if (row.seq != rest[0].seq || blocks(row.pos) != blocks(rest[0].pos)) break;
  }
  return length;
}

Status PaddedEngine::DecodePart(std::span<const BatchRow> rows) {
  const bool wants_logits = std::any_of(rows.begin(), rows.end(), [](const BatchRow& row) { return row.wants_logits; });
  part_.Clear();
  for (BatchRow row : rows) {
    row.wants_logits = wants_logits;
    part_.Add(row);
  }
  while (part_.size() < rows_) {
    const Pos pos = rows[0].pos + part_.size();
    part_.Add({rows[0].token, pos, rows[0].seq, wants_logits});
  }
  if (Status status = engine_.Decode(part_); !status.ok()) return status;
  for (size_t i = 0; i < rows.size(); ++i) {
    logits_of_.push_back(rows[i].wants_logits ? static_cast<int>(logits_.size() / static_cast<size_t>(info_.n_vocab))
                                              : -1);
    if (!rows[i].wants_logits) continue;
    const std::span<const float> logits = engine_.Logits(static_cast<int>(i));
    logits_.insert(logits_.end(), logits.begin(), logits.end());
  }
  const Pos end = rows.back().pos + 1;
  return engine_.TruncateTo(rows[0].seq, end) == end ? Status() : Internal("padding could not be taken back");
}

std::span<const float> PaddedEngine::Logits(int row) {
  const int place = logits_of_[static_cast<size_t>(row)];
  assert(place >= 0 && "the row did not ask for logits");
  const auto n_vocab = static_cast<size_t>(info_.n_vocab);
  return std::span<const float>(logits_).subspan(static_cast<size_t>(place) * n_vocab, n_vocab);
}

Status PaddedEngine::RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) {
  if (length > info_.sequence_length) {
    engine_.TruncateTo(seq, 0);
    return InvalidArgument("the saved state is longer than the context");
  }
  return engine_.RestoreSequence(seq, state, length);
}

}  // namespace outrider
