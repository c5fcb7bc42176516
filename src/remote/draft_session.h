// DraftSession: what a draft server knows of one stream: the text so far, and its line after it.
//
// Pure: messages go in, the worker extends the line, messages come out. Whatever a client sends, memory is bounded by
// the limits; a message against the rules is an error, after which the session is only good for being destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "drafters/drafter.h"
#include "remote/draft.pb.h"
#include "spec/draft.h"

namespace outrider {

struct DraftLimits {
  Token vocabulary = 0;          // tokens the draft model knows
  uint64_t fingerprint = 0;      // of its tokenizer
  size_t max_length = 1 << 18;   // tokens of a text
  int ahead = 24;                // tokens past the text
  float min_survival = 0.05f;  // a line that is less likely to be right than this is not gone on with
};

class DraftSession {
 public:
  explicit DraftSession(const DraftLimits& limits) : limits_(limits) {}

  Status Receive(const draft::v1::ToServer& message);

  // An Open has come, and waits for an answer: a text of that owner whose prefixes have these hashes is begun.
  bool opening() const { return phase_ == Phase::kOpening; }
  const std::string& owner() const { return owner_; }
  std::span<const uint64_t> prefixes() const { return prefixes_; }
  const DraftContext& context() const { return context_; }

  // The answer: the text begins with `known`, which must have one of those hashes (or be empty).
  void Begin(std::span<const Token> known);

  // Committed tokens, all of them once the context has been read; and those of the line after them.
  std::span<const Token> text() const { return std::span(tokens_).first(committed_); }
  std::span<const Token> text_and_line() const { return tokens_; }
  bool reading() const { return phase_ == Phase::kReading; }

  // How many more tokens the line should have.
  int Wanted() const;

  // The line goes on with the tokens of `draft`; if there are none it ends here.
  void Extend(const Draft& draft);

  // Fills in the next proposal, if it is time for one.
  bool TakeProposal(draft::v1::ToClient* message);

 private:
  enum class Phase { kNew, kOpening, kReading, kDrafting };

  struct Guess {
    uint8_t confidence;
    std::vector<TokenProbability> candidates;
  };

  Status Open(const draft::v1::Open& open);
  Status Read(const draft::v1::ToServer& message);
  Status Commit(const draft::v1::ToServer& message);
  void BeginLine();
  size_t line_size() const { return tokens_.size() - committed_; }

  const DraftLimits limits_;
  Phase phase_ = Phase::kNew;
  std::string owner_;
  std::vector<uint64_t> prefixes_;
  DraftContext context_;
  size_t context_length_ = 0;

  std::vector<Token> tokens_;  // the text, then the line
  size_t committed_ = 0;
  size_t base_ = 0;             // of the line
  std::vector<Guess> guesses_;  // one for each token of the line
  size_t sent_ = 0;             // tokens of the line, which the client has or will have
  double survival_ = 1;         // of the line
  bool ended_ = false;          // there is nothing to say after it
};

}  // namespace outrider
