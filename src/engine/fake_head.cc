#include "engine/fake_head.h"

#include <cstdio>
#include <cstdlib>

#include "engine/fake_engine.h"

namespace outrider {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "FakeHead: %s\n", what);
  std::abort();
}

}  // namespace

FakeHead::FakeHead(HeadInfo info, int n_sequences, Script script)
    : info_(std::move(info)), script_(std::move(script)), memory_(static_cast<size_t>(n_sequences)) {
  for (Token last = 0; last < info_.n_vocab; ++last) {
    last_tokens_.emplace(FakeEngine::HiddenOf(info_.layers, std::vector<Token>{last}), last);
    for (Token before = 0; before < info_.n_vocab; ++before)
      last_tokens_.emplace(FakeEngine::HiddenOf(info_.layers, std::vector<Token>{before, last}), last);
  }
}

Status FakeHead::Decode(std::span<const HeadRow> rows, bool wants_outputs) {
  const auto count = static_cast<int>(rows.size());
  Require(count > 0 && count <= info_.max_batch, "the batch is empty or too large");
  Require(!wants_outputs || count <= info_.max_outputs, "too many rows want outputs");
  ++decodes_;
  rows_ += count;
  std::vector<Output> outputs;  // those of the last Decode are valid until here: rows may point to them
  for (const HeadRow& row : rows) {
    auto& memory = memory_[static_cast<size_t>(row.seq)];
    Require(row.place == static_cast<Pos>(memory.size()), "a place is missing or there twice");
    Require(row.place < info_.sequence_length, "past the end of the memory");
    Require(row.token >= 0 && row.token < info_.n_vocab, "token outside of the vocabulary");
    const auto known = last_tokens_.find({row.state.begin(), row.state.end()});
    Require(known != last_tokens_.end(), "a state that no row has");
    const Token before = known->second;
    memory.push_back({before, row.token, row.from_target});
    if (!wants_outputs) continue;
    Output& output = outputs.emplace_back();
    output.logits.assign(static_cast<size_t>(info_.n_vocab), 0.0f);
    output.logits[static_cast<size_t>(script_(before, row.token))] = 10.0f;
    output.state = FakeEngine::HiddenOf(info_.layers, std::vector<Token>{before, row.token});
  }
  outputs_ = std::move(outputs);
  return should_fail_ && should_fail_() ? Internal("scripted failure") : Status();
}

std::span<const float> FakeHead::Logits(int row) {
  Require(row >= 0 && row < static_cast<int>(outputs_.size()), "logits of a row that gives none");
  return outputs_[static_cast<size_t>(row)].logits;
}

std::span<const float> FakeHead::State(int row) {
  Require(row >= 0 && row < static_cast<int>(outputs_.size()), "the state of a row that gives none");
  return outputs_[static_cast<size_t>(row)].state;
}

void FakeHead::TruncateTo(SeqId seq, Pos length) {
  Require(length >= 0, "negative length");
  auto& memory = memory_[static_cast<size_t>(seq)];
  if (static_cast<size_t>(length) < memory.size()) memory.resize(static_cast<size_t>(length));
}

}  // namespace outrider
