// DraftSession: the state of one stream at the draft server: the text so far, and the draft after it.
//
// It does no I/O: messages go in, the batcher extends the draft, messages come out. Whatever a client sends, memory is
// bounded by the limits. A message that breaks a rule of the protocol is an error; after it the session must not be
// used any more.
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
  Token vocabulary = 0;         // size of the draft model's vocabulary
  uint64_t fingerprint = 0;     // of its tokenizer
  size_t max_length = 1 << 18;  // of a text, in tokens
  int ahead = 24;               // length of a draft, in tokens
  float min_survival = 0.05f;   // a draft that is right with less than this probability is not extended
};

class DraftSession {
 public:
  explicit DraftSession(const DraftLimits& limits) : limits_(limits) {}

  Status Receive(const draft::v1::ToServer& message);

  // An Open has been received and has to be answered with Begin. `prefixes` are the hashes of the context's prefixes,
  // to find out how much of it is in memory.
  bool opening() const { return phase_ == Phase::kOpening; }
  const std::string& owner() const { return owner_; }
  std::span<const uint64_t> prefixes() const { return prefixes_; }
  const DraftContext& context() const { return context_; }

  // Answers the Open: the text begins with `known`, which must be empty or have one of those hashes.
  void Begin(std::span<const Token> known);

  // The committed tokens that were received so far; and with the drafted ones after them.
  std::span<const Token> text() const { return std::span(tokens_).first(committed_); }
  std::span<const Token> text_and_draft() const { return tokens_; }
  bool reading() const { return phase_ == Phase::kReading; }

  // How many tokens longer the draft should be.
  int Wanted() const;

  // Appends the tokens of `more` to the draft. If there are none, the draft is not extended any further.
  void Extend(const Draft& more);

  // Makes a message of the tokens that were not sent yet, if there are enough of them; false if not. A client that has
  // no tokens of the draft is always answered: by a message without tokens if the model proposes none.
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
  void BeginDraft();
  size_t draft_size() const { return tokens_.size() - committed_; }

  const DraftLimits limits_;
  Phase phase_ = Phase::kNew;
  std::string owner_;
  std::vector<uint64_t> prefixes_;
  DraftContext context_;
  size_t context_length_ = 0;

  std::vector<Token> tokens_;  // the text, then the draft
  size_t committed_ = 0;
  size_t base_ = 0;             // of the draft
  std::vector<Guess> guesses_;  // one for each token of the draft
  size_t sent_ = 0;             // tokens of the draft that were sent
  double survival_ = 1;         // of the draft: probability that all of it is right
  bool ended_ = false;          // the model proposes nothing after it
  bool owes_answer_ = false;    // the client has no tokens of the draft, and nothing was sent since it is so
};

}  // namespace outrider
