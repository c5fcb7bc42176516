#include "drafters/retokenizing_drafter.h"

#include "base/utf8.h"

namespace outrider {

RetokenizingDrafter::RetokenizingDrafter(std::unique_ptr<ModelDrafter> model, const Tokenizer& target,
                                         const Tokenizer& draft, int n_sequences)
    : Drafter(model->traits()),
      model_(std::move(model)),
      target_(target),
      draft_(draft),
      retokenizers_(static_cast<size_t>(n_sequences), Retokenizer(target, draft)),
      translated_(static_cast<size_t>(n_sequences)) {}

void RetokenizingDrafter::Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) {
  Retokenizer& retokenizer = retokenizers_[static_cast<size_t>(seq)];
  retokenizer.Begin(history);
  DraftContext theirs;
  theirs.sampling.temperature = 0;
  theirs.owner = context.owner;
  model_->Begin(seq, {}, theirs);
}

int RetokenizingDrafter::Lag(SeqId seq, std::span<const Token> history) const {
  const Retokenizer& retokenizer = retokenizers_[static_cast<size_t>(seq)];
  const size_t behind = history.size() - retokenizer.consumed();
  return behind > kReadAlong ? static_cast<int>(behind) : model_->Lag(seq, retokenizer.output());
}

void RetokenizingDrafter::Read(SeqId seq, std::span<const Token> history, int tokens) {
  Retokenizer& retokenizer = retokenizers_[static_cast<size_t>(seq)];
  model_->Revise(seq, retokenizer.settled());  // tokens after these may change
  retokenizer.Advance(history, static_cast<size_t>(tokens));
  if (const auto output = retokenizer.Retokenize(""); !output.empty()) model_->Read(seq, output, tokens);
}

void RetokenizingDrafter::Propose(std::span<Proposal*> proposals) {
  std::vector<Proposal*> theirs, ours;
  for (Proposal* proposal : proposals) {
    Proposal& translated = translated_[static_cast<size_t>(proposal->seq)];
    if (!TranslateToDraft(*proposal, translated)) continue;
    ours.push_back(proposal);
    theirs.push_back(&translated);
  }
  model_->Propose(theirs);
  for (Proposal* proposal : ours) TranslateToTarget(translated_[static_cast<size_t>(proposal->seq)].draft, *proposal);
}

bool RetokenizingDrafter::TranslateToDraft(const Proposal& proposal, Proposal& translated) {
  Retokenizer& retokenizer = retokenizers_[static_cast<size_t>(proposal.seq)];
  model_->Revise(proposal.seq, retokenizer.settled());
  retokenizer.Advance(proposal.history, kReadAlong);
  if (retokenizer.consumed() < proposal.history.size()) return false;
  std::string given;
  for (const DraftToken& token : proposal.draft.tokens) given += target_.Piece(token.token, true);
  translated.draft.Clear();
  translated.seq = proposal.seq;
  translated.history = retokenizer.Retokenize(given);
  translated.max_tokens = proposal.max_tokens - proposal.draft.size();
  translated.p_min = proposal.p_min;
  translated.min_survival = proposal.min_survival;
  return !translated.history.empty();
}

// The confidence in a target token is the product of the confidences in the draft tokens that begin within it.
void RetokenizingDrafter::TranslateToTarget(const Draft& theirs, Proposal& proposal) const {
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
