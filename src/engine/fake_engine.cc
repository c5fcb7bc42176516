#include "engine/fake_engine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace outrider {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "FakeEngine: %s\n", what);
  std::abort();
}

}  // namespace

FakeEngine::FakeEngine(EngineInfo info, Script script)
    : info_(std::move(info)),
      script_(std::move(script)),
      places_(static_cast<size_t>(info_.n_sequences)),
      memory_(static_cast<size_t>(info_.n_sequences)),
      adapters_(static_cast<size_t>(info_.n_sequences)) {}

FakeEngine::Script FakeEngine::Reciting(std::string text, Pos prompt_length) {
  return [text = std::move(text), prompt_length](std::span<const Token> tokens) -> Token {
    const auto at = static_cast<Pos>(tokens.size()) - prompt_length;
    if (at < 0) return 0;
    return at < static_cast<Pos>(text.size()) ? static_cast<unsigned char>(text[static_cast<size_t>(at)]) : 257;
  };
}

FakeEngine::Script FakeEngine::Hashing(int n_vocab) {
  return [n_vocab](std::span<const Token> tokens) -> Token {
    uint64_t hash = 0xcbf29ce484222325;
    for (Token token : tokens) hash = (hash ^ static_cast<uint32_t>(token)) * 0x100000001b3;
    return static_cast<Token>((hash >> 17) % static_cast<uint64_t>(n_vocab));
  };
}

Token FakeEngine::NextWith(const AdapterSet& adapters, Token next, int n_vocab) {
  if (adapters.empty()) return next;
  uint64_t hash = static_cast<uint64_t>(next);
  for (const char c : Describe(adapters)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<Token>((hash >> 17) % static_cast<uint64_t>(n_vocab));
}

Status FakeEngine::Decode(const Batch& batch) {
  Require(!batch.empty() && batch.size() <= info_.max_batch, "the batch is empty or too large");
  for (const AdapterScale& adapter : batch.adapters()) {
    Require(adapter.id >= 0 && adapter.id < info_.n_adapters && adapter.scale != 0, "no such adapter");
  }
  batches_.push_back(batch);
  const bool fails = should_fail_ && should_fail_(batch);
  logits_.assign(static_cast<size_t>(batch.size()), std::nullopt);
  hidden_.assign(static_cast<size_t>(batch.size()), std::nullopt);
  const int free_rollback = FreeRollback(batch.rows().front().seq == batch.rows().back().seq);
  for (Places& places : places_) places.undoable = -1;
  SeqId last_seq = -1;
  int outputs = 0;
  for (int i = 0; i < batch.size(); ++i) {
    const BatchRow& row = batch.rows()[static_cast<size_t>(i)];
    Require(row.seq >= 0 && row.seq < info_.n_sequences, "no such sequence");
    Require(row.seq >= last_seq, "sequences of a batch must ascend");
    last_seq = row.seq;
    auto& memory = memory_[static_cast<size_t>(row.seq)];
    Require(row.pos == static_cast<Pos>(memory.size()), "a position is missing or there twice");
    Require(row.pos < info_.sequence_length, "past the end of the context");
    Require(row.token >= 0 && row.token < info_.n_vocab, "token outside of the vocabulary");
    Require((row.values != nullptr) == (batch.rows().front().values != nullptr), "tokens and values in one batch");
    std::optional<AdapterSet>& adapters = adapters_[static_cast<size_t>(row.seq)];
    Require(memory.empty() || !adapters || *adapters == batch.adapters(), "the memory is of other adapters");
    adapters = batch.adapters();
    memory.push_back(row.values != nullptr ? static_cast<Token>(*row.values) : row.token);
    int& undoable = places_[static_cast<size_t>(row.seq)].undoable;
    undoable = std::min(undoable + 1, free_rollback);
    if (row.wants_hidden) {
      Require(!hidden_layers_.empty(), "hidden states were not provided for");
      hidden_[static_cast<size_t>(i)] = HiddenOf(hidden_layers_, memory);
    }
    if (!row.wants_logits) continue;
    ++outputs;
    auto& logits = logits_[static_cast<size_t>(i)].emplace(static_cast<size_t>(info_.n_vocab), 0.0f);
    logits[static_cast<size_t>(NextWith(batch.adapters(), script_(memory), info_.n_vocab))] = 10.0f;
  }
  Require(outputs <= info_.max_outputs, "too many rows want logits");
  return fails ? Internal("scripted failure") : Status();  // some or all rows may be in memory after a failure
}

std::span<const float> FakeEngine::Logits(int row) {
  Require(row >= 0 && row < static_cast<int>(logits_.size()) && logits_[static_cast<size_t>(row)].has_value(),
          "logits of a row that did not ask for them");
  return *logits_[static_cast<size_t>(row)];
}

Pos FakeEngine::TruncateTo(SeqId seq, Pos length) {
  Require(length >= 0, "negative length");
  const Pos kept = TruncatedLength(seq, length);
  memory_[static_cast<size_t>(seq)].resize(static_cast<size_t>(kept));
  Places& places = places_[static_cast<size_t>(seq)];
  places.undoable = -1;
  if (places.saved > kept) places.saved.reset();
  std::erase_if(places.remembered, [kept](Pos place) { return place > kept; });
  return kept;
}

Pos FakeEngine::TruncatedLength(SeqId seq, Pos length) const {
  const Places& places = places_[static_cast<size_t>(seq)];
  if (info_.rollback == Rollback::kDropCells || Length(seq) <= length) return std::min(length, Length(seq));
  if (length > 0 && Length(seq) - length <= places.undoable) return length;
  Pos latest = places.saved <= length ? places.saved.value_or(0) : 0;
  for (const Pos place : places.remembered) latest = place <= length ? std::max(latest, place) : latest;
  return latest;
}

void FakeEngine::LayOut(std::span<const SequenceRows> step, StepLayout* layout) const {
  int rows = 0;
  for (const SequenceRows& sequence : step) rows += sequence.rows;
  layout->parts.assign(1, rows);
  layout->free_rollback = FreeRollback(step.size() == 1);
}

int FakeEngine::FreeRollback(bool one_sequence) const {
  if (info_.rollback == Rollback::kDropCells) return StepLayout::kAllRows;
  return one_sequence ? info_.device_snapshots : 0;
}

Status FakeEngine::ProvideHidden(std::span<const int> layers) {
  const bool same = std::equal(layers.begin(), layers.end(), hidden_layers_.begin(), hidden_layers_.end());
  if (!hidden_layers_.empty() && !same) return Unsupported("other layers are provided already");
  hidden_layers_.assign(layers.begin(), layers.end());
  return {};
}

std::span<const float> FakeEngine::Hidden(int row) {
  Require(row >= 0 && row < static_cast<int>(hidden_.size()) && hidden_[static_cast<size_t>(row)].has_value(),
          "hidden states of a row that did not ask for them");
  return *hidden_[static_cast<size_t>(row)];
}

std::vector<float> FakeEngine::HiddenOf(std::span<const int> layers, std::span<const Token> tokens) {
  std::vector<float> states;
  for (const int layer : layers) {
    uint64_t hash = 0x9e3779b97f4a7c15 * static_cast<uint64_t>(layer + 1);
    for (const Token token : tokens.last(std::min(tokens.size(), kHiddenTokens))) {
      hash = (hash ^ static_cast<uint32_t>(token)) * 0x100000001b3;
    }
    for (size_t i = 0; i < kHiddenSize; ++i) states.push_back(static_cast<float>((hash >> (16 * i)) & 0xffff) / 65536);
  }
  return states;
}

void FakeEngine::SaveState(SeqId seq) {
  if (KeepsStates(info_.rollback)) places_[static_cast<size_t>(seq)].saved = Length(seq);
}

void FakeEngine::Remember(SeqId seq) {
  if (KeepsStates(info_.rollback)) places_[static_cast<size_t>(seq)].remembered.push_back(Length(seq));
}

Result<std::vector<uint8_t>> FakeEngine::SaveSequence(SeqId seq) {
  const auto& memory = memory_[static_cast<size_t>(seq)];
  std::vector<uint8_t> state(memory.size() * sizeof(Token));
  if (!state.empty()) std::memcpy(state.data(), memory.data(), state.size());
  return state;
}

Status FakeEngine::RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) {
  auto& memory = memory_[static_cast<size_t>(seq)];
  memory.clear();
  places_[static_cast<size_t>(seq)] = {};
  adapters_[static_cast<size_t>(seq)].reset();
  if (state.size() != static_cast<size_t>(length) * sizeof(Token)) return InvalidArgument("not a saved sequence");
  memory.resize(static_cast<size_t>(length));
  if (!state.empty()) std::memcpy(memory.data(), state.data(), state.size());
  return {};
}

}  // namespace outrider
