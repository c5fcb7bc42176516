// FakeEngine: an engine whose next token is a function of the tokens so far. For scheduler and policy tests, which run
// on it in milliseconds. With adapters the same tokens are followed by others. It records every batch and aborts the
// test if Engine's contract is broken. Rollbacks work as info.rollback says: a running state only goes back to places
// that were saved or remembered. Every step is one part, and with a running state only steps of one sequence have a
// free rollback. The hidden states of a row at a layer are kHiddenSize numbers computed from the layer and the last
// kHiddenTokens tokens: rows with the same tokens have equal states, others differ. A row of values
// counts as a token whose id is its first value.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace outrider {

class FakeEngine : public Engine {
 public:
  static constexpr size_t kHiddenSize = 4, kHiddenTokens = 2;

  // The token the model favours after `tokens`.
  using Script = std::function<Token(std::span<const Token> tokens)>;

  FakeEngine(EngineInfo info, Script script);

  // Repeats `text` (as bytes, see FakeTokenizer) by position; a script for tests that know what they want to read.
  static Script Reciting(std::string text, Pos prompt_length);
  // Pseudo-random but a function of all tokens so far: any mistake in the memory changes what follows.
  static Script Hashing(int n_vocab);

  const EngineInfo& info() const override { return info_; }
  Status Decode(const Batch& batch) override;
  std::span<const float> Logits(int row) override;
  Status ProvideHidden(std::span<const int> layers) override;
  std::span<const float> Hidden(int row) override;
  void LayOut(std::span<const SequenceRows> step, StepLayout* layout) const override;
  Pos Length(SeqId seq) const override { return static_cast<Pos>(memory_[static_cast<size_t>(seq)].size()); }
  Pos TruncateTo(SeqId seq, Pos length) override;
  Pos TruncatedLength(SeqId seq, Pos length) const override;
  void SaveState(SeqId seq) override;
  void Remember(SeqId seq) override;
  Result<std::vector<uint8_t>> SaveSequence(SeqId seq) override;
  Status RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) override;

  // The hidden states of a row at `layers`, after `tokens` (its own at the end).
  static std::vector<float> HiddenOf(std::span<const int> layers, std::span<const Token> tokens);

  // For tests.
  const std::vector<Batch>& batches() const { return batches_; }
  void ForgetBatches() { batches_.clear(); }
  const std::vector<Token>& memory(SeqId seq) const { return memory_[static_cast<size_t>(seq)]; }
  // What follows `tokens` with these adapters if `next` follows without.
  static Token NextWith(const AdapterSet& adapters, Token next, int n_vocab);
  void FailWhile(std::function<bool(const Batch&)> should_fail) { should_fail_ = std::move(should_fail); }

 private:
  // Where a running state can go back to.
  struct Places {
    int undoable = -1;  // rows of the last batch that can be taken back for free
    std::optional<Pos> saved;
    std::vector<Pos> remembered;
  };

  int FreeRollback(bool one_sequence) const;

  const EngineInfo info_;
  const Script script_;
  std::vector<int> hidden_layers_;
  std::vector<Places> places_;
  std::vector<std::vector<Token>> memory_;
  std::vector<std::optional<AdapterSet>> adapters_;  // of the memory of each sequence; nothing if it was restored
  std::vector<Batch> batches_;
  std::vector<std::optional<std::vector<float>>> logits_;  // of the last batch, by row
  std::vector<std::optional<std::vector<float>>> hidden_;  // likewise
  std::function<bool(const Batch&)> should_fail_;
};

}  // namespace outrider
