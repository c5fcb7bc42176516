#include "drafters/drafter_record.h"

#include <utility>

namespace outrider {

DrafterRecord::DrafterRecord(DrafterId its_id, std::unique_ptr<Drafter> its_drafter, int n_sequences,
                             const Tuning& tuning)
    : id(its_id),
      drafter(std::move(its_drafter)),
      acceptance(n_sequences, tuning.acceptance),
      proposals(static_cast<size_t>(n_sequences)),
      token_seconds(tuning.asking.mean_window),
      read_seconds(tuning.asking.mean_window),
      predictions_(static_cast<size_t>(n_sequences)) {}

int DrafterRecord::Lag(SeqId seq, std::span<const Token> history) const {
  const HistoryReader* reader = drafter->reader();
  return reader == nullptr ? 0 : reader->Lag(seq, history);
}

void DrafterRecord::Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) {
  predictions_[static_cast<size_t>(seq)].Close();
  acceptance.BeginSequence(seq);
  drafter->Begin(seq, history, context);
}

void DrafterRecord::Commit(SeqId seq, const CommittedStep& step) {
  Prediction& prediction = predictions_[static_cast<size_t>(seq)];
  for (const Token generated : step.history.last(static_cast<size_t>(step.added))) {
    if (!prediction.open()) break;
    const DraftToken& predicted = prediction.tokens[prediction.compared];
    const bool right = predicted.token == generated;
    if (prediction.compared >= prediction.own_from) acceptance.Observe(seq, predicted.confidence, right);
    ++prediction.compared;
    if (!right) prediction.Close();
  }
  if (step.added > 0 || traits().reads_hidden) drafter->Commit(seq, step);
}

void DrafterRecord::Predict(const Proposal& proposal, size_t own_from, bool verified) {
  Prediction& prediction = predictions_[static_cast<size_t>(proposal.seq)];
  if (prediction.open() && !verified) return;
  prediction.tokens = proposal.draft.tokens;
  prediction.own_from = own_from;
  prediction.compared = 0;
}

void DrafterRecord::AppendSurvival(const Proposal& proposal, size_t own_from, bool blind,
                                   std::vector<double>* survival) const {
  double chance = survival->empty() ? 1 : survival->back();
  for (size_t i = own_from; i < proposal.draft.tokens.size(); ++i) {
    const auto place = static_cast<int>(i - own_from);
    chance *= blind ? acceptance.TypicalAcceptance(proposal.seq, place)
                    : acceptance.Estimate(proposal.seq, place, proposal.draft.tokens[i].confidence);
    survival->push_back(chance);
  }
}

}  // namespace outrider
