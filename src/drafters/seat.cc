#include "drafters/seat.h"

#include <utility>

namespace outrider {

Seat::Seat(DrafterId its_id, std::unique_ptr<Drafter> its_drafter, int n_sequences)
    : id(its_id),
      drafter(std::move(its_drafter)),
      acceptance(n_sequences),
      proposals(static_cast<size_t>(n_sequences)),
      shadows_(static_cast<size_t>(n_sequences)) {}

void Seat::Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) {
  shadows_[static_cast<size_t>(seq)].Close();
  acceptance.BeginSequence(seq);
  drafter->Begin(seq, history, context);
}

void Seat::Commit(SeqId seq, std::span<const Token> history, int added) {
  Shadow& shadow = shadows_[static_cast<size_t>(seq)];
  for (const Token said : history.last(static_cast<size_t>(added))) {
    if (!shadow.open()) break;
    const DraftToken& foretold = shadow.tokens[shadow.answered];
    const bool right = foretold.token == said;
    if (shadow.answered >= shadow.own_from) {
      acceptance.Observe(seq, foretold.confidence, right);
    }
    ++shadow.answered;
    if (!right) shadow.Close();
  }
  drafter->Commit(seq, history, added);
}

void Seat::Foretell(const Proposal& proposal, size_t own_from, bool better) {
  Shadow& shadow = shadows_[static_cast<size_t>(proposal.seq)];
  if (shadow.open() && !better) return;
  shadow.tokens = proposal.draft.tokens;
  shadow.own_from = own_from;
  shadow.answered = 0;
}

void Seat::Survive(const Proposal& proposal, size_t own_from, bool blind, std::vector<double>* survival) const {
  double chance = survival->empty() ? 1 : survival->back();
  for (size_t i = own_from; i < proposal.draft.tokens.size(); ++i) {
    const auto place = static_cast<int>(i - own_from);
    chance *= blind ? acceptance.TypicalAcceptance(proposal.seq, place)
                    : acceptance.Estimate(proposal.seq, place, proposal.draft.tokens[i].confidence);
    survival->push_back(chance);
  }
}

}  // namespace outrider
