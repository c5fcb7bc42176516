// For tests of drafters that look things up: runs a drafter on histories whose tokens are bytes.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drafters/registry.h"
#include "engine/fake_tokenizer.h"

namespace outrider {

inline std::vector<Token> ByteTokens(std::string_view text) {
  return FakeTokenizer().Tokenize(text, false, SpecialTokens::kAsText);
}

inline std::string TextOf(const Draft& draft) {
  std::string text;
  for (const DraftToken& token : draft.tokens) text += FakeTokenizer().Piece(token.token, false);
  return text;
}

inline Result<std::unique_ptr<Drafter>> MakeFromKind(const DrafterKind& kind, const std::string& parameters,
                                                     int n_sequences = 4) {
  static const FakeTokenizer tokenizer;
  Result<DrafterChoice> choice = ParseDrafterChoice(parameters.empty() ? kind.name : kind.name + ":" + parameters);
  if (!choice.ok()) return choice.status();
  DrafterParameters typed(*choice);
  Result<std::unique_ptr<Drafter>> drafter = kind.make(typed, {n_sequences, tokenizer, nullptr});
  if (Status status = typed.Check(); !status.ok()) return status;
  return drafter;
}

// A drafter and the histories of its sequences.
class Talk {
 public:
  explicit Talk(const DrafterKind& kind, const std::string& parameters = "") {
    auto made = MakeFromKind(kind, parameters);
    EXPECT_TRUE(made.ok()) << made.status().message();
    drafter_ = std::move(*made);
  }

  void Begin(std::string_view prompt, SeqId seq = 0, const std::string& owner = "") {
    histories_[seq] = ByteTokens(prompt);
    DraftContext context;
    context.owner = owner;
    drafter_->Begin(seq, histories_[seq], context);
  }

  void Say(std::string_view text, SeqId seq = 0) {
    for (const Token token : ByteTokens(text)) {
      histories_[seq].push_back(token);
      drafter_->Commit(seq, {histories_[seq], 1});
    }
  }

  void End(SeqId seq = 0, bool complete = true) { drafter_->End(seq, histories_[seq], complete); }
  void Stop() { drafter_.reset(); }  // the server stops

  // A proposal for `seq`, with `begun` drafted by another already.
  Proposal Ask(int max_tokens, SeqId seq = 0, std::string_view begun = "") {
    Proposal proposal{seq, histories_[seq], max_tokens, 0, 0, {}};
    for (const Token token : ByteTokens(begun)) proposal.draft.tokens.push_back({token, 0.9f, 7});
    return proposal;
  }

  void Propose(Proposal& proposal) {
    Proposal* asked[] = {&proposal};
    drafter_->Propose(asked);
  }

  std::string Draft(int max_tokens, SeqId seq = 0, std::string_view begun = "") {
    Proposal proposal = Ask(max_tokens, seq, begun);
    Propose(proposal);
    return TextOf(proposal.draft);
  }

  Drafter& drafter() { return *drafter_; }

 private:
  std::unique_ptr<Drafter> drafter_;
  std::map<SeqId, std::vector<Token>> histories_;
};

// Checks what every such drafter must guarantee, with random requests of two owners in all sequences, whose histories
// grow, shrink and repeat themselves. To be called within a property.
void CheckPromises(const DrafterKind& kind, const std::string& parameters);

}  // namespace outrider
