#include "drafters/through_text.h"

#include "base/utf8.h"

namespace outrider {

ThroughText::ThroughText(std::unique_ptr<ModelDrafter> model, const Tokenizer& target, const Tokenizer& draft,
                         int n_sequences)
    : Drafter(model->traits()),
      model_(std::move(model)),
      target_(target),
      draft_(draft),
      retellings_(static_cast<size_t>(n_sequences), Retelling(target, draft)),
      retold_(static_cast<size_t>(n_sequences)) {}

void ThroughText::Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) {
  Retelling& retelling = retellings_[static_cast<size_t>(seq)];
  retelling.Begin(history);
  DraftContext theirs;
  theirs.sampling.temperature = 0;
  theirs.owner = context.owner;
  model_->Begin(seq, {}, theirs);
}

int ThroughText::Lag(SeqId seq, std::span<const Token> history) const {
  const Retelling& retelling = retellings_[static_cast<size_t>(seq)];
  const size_t behind = history.size() - retelling.followed();
  return behind > ModelDrafter::kReadAlong ? static_cast<int>(behind) : model_->Lag(seq, retelling.told());
}

void ThroughText::Read(SeqId seq, std::span<const Token> history, int tokens) {
  Retelling& retelling = retellings_[static_cast<size_t>(seq)];
  model_->Revise(seq, retelling.settled());  // what was told behind may be told otherwise now
  retelling.Follow(history, static_cast<size_t>(tokens));
  if (const auto told = retelling.Tell(""); !told.empty()) model_->Read(seq, told, tokens);
}

void ThroughText::Propose(std::span<Proposal*> proposals) {
  std::vector<Proposal*> theirs, ours;
  for (Proposal* proposal : proposals) {
    Proposal& retold = retold_[static_cast<size_t>(proposal->seq)];
    if (!Retell(*proposal, retold)) continue;
    ours.push_back(proposal);
    theirs.push_back(&retold);
  }
  model_->Propose(theirs);
  for (Proposal* proposal : ours) TellBack(retold_[static_cast<size_t>(proposal->seq)].draft, *proposal);
}

bool ThroughText::Retell(const Proposal& proposal, Proposal& retold) {
  Retelling& retelling = retellings_[static_cast<size_t>(proposal.seq)];
  model_->Revise(proposal.seq, retelling.settled());
  retelling.Follow(proposal.history, ModelDrafter::kReadAlong);
  if (retelling.followed() < proposal.history.size()) return false;
  std::string given;
  for (const DraftToken& token : proposal.draft.tokens) given += target_.Piece(token.token, true);
  retold.draft.Clear();
  retold.seq = proposal.seq;
  retold.history = retelling.Tell(given);
  retold.max_tokens = proposal.max_tokens - proposal.draft.size();
  retold.p_min = proposal.p_min;
  retold.min_survival = proposal.min_survival;
  return !retold.history.empty();
}

// Each of the target's tokens is as sure as the draft tokens that begin within it.
void ThroughText::TellBack(const Draft& theirs, Proposal& proposal) const {
  std::string text;
  std::vector<size_t> begins;
  for (const DraftToken& token : theirs.tokens) {
    begins.push_back(text.size());
    text += draft_.Piece(token.token, true);
  }
  text.resize(text.size() - IncompleteUtf8Tail(text));
  size_t end = 0, next = 0;
  for (const Token token : TokenizeWithin(target_, text)) {
    if (proposal.draft.size() >= proposal.max_tokens || target_.EndsGeneration(token)) return;
    end += target_.Piece(token, true).size();
    float confidence = 1;
    for (; next < begins.size() && begins[next] < end; ++next) confidence *= theirs.tokens[next].confidence;
    proposal.draft.tokens.push_back({token, confidence});
  }
}

}  // namespace outrider
