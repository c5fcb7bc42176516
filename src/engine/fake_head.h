// FakeHead: a head for a FakeEngine whose next token is a function of the last two tokens. It knows which two tokens
// each hidden state of the engine stands for, so with the right states it is always right, and with the state of
// another row it is wrong. It aborts the test if HiddenHead's contract is broken, or if it is given a state that no row
// has.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "engine/hidden_head.h"

namespace outrider {

class FakeHead : public HiddenHead {
 public:
  // The token that follows these two. `info.layers` are those that the engine provides.
  using Script = std::function<Token(Token before, Token last)>;

  FakeHead(HeadInfo info, int n_sequences, Script script);

  const HeadInfo& info() const override { return info_; }
  Status Decode(std::span<const HeadRow> rows, bool wants_outputs) override;
  std::span<const float> Logits(int row) override;
  std::span<const float> State(int row) override;
  Pos Length(SeqId seq) const override { return static_cast<Pos>(memory_[static_cast<size_t>(seq)].size()); }
  void TruncateTo(SeqId seq, Pos length) override;

  // For tests. A row in memory, as the tokens that it stands for.
  struct Row {
    Token before, last;
    bool from_target;
    bool operator==(const Row&) const = default;
  };
  const std::vector<Row>& memory(SeqId seq) const { return memory_[static_cast<size_t>(seq)]; }
  int decodes() const { return decodes_; }
  int rows() const { return rows_; }  // of all decodes
  void FailWhile(std::function<bool()> should_fail) { should_fail_ = std::move(should_fail); }

 private:
  struct Output {
    std::vector<float> logits, state;
  };

  const HeadInfo info_;
  const Script script_;
  std::map<std::vector<float>, Token> last_tokens_;  // by state of the engine: the last token it stands for
  std::vector<std::vector<Row>> memory_;             // by sequence
  std::vector<Output> outputs_;                      // of the last Decode
  std::function<bool()> should_fail_;
  int decodes_ = 0, rows_ = 0;
};

}  // namespace outrider
