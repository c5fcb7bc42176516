// DrafterRecord: a drafter, and what is known about it: how often it is right, what its tokens cost, and what it
// predicted that the target has not answered yet.
//
// Every prediction is scored when the target has said its own tokens, whether it was verified or not, so that a drafter
// that is not used at present can show that it has become better.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "drafters/drafter.h"
#include "drafters/recent_mean.h"
#include "spec/acceptance_model.h"
#include "spec/draft.h"
#include "spec/tuning.h"

namespace outrider {

class DrafterRecord {
 public:
  DrafterRecord(DrafterId id, std::unique_ptr<Drafter> drafter, int n_sequences, const Tuning& tuning = {});

  const DrafterTraits& traits() const { return drafter->traits(); }

  // Tokens that the drafter has to read before it can propose for `seq`.
  int Lag(SeqId seq, std::span<const Token> history) const;

  // A request begins in `seq`.
  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context);

  // Scores the prediction for `seq` and passes the step on to the drafter.
  void Commit(SeqId seq, const CommittedStep& step);

  // The proposal's tokens from `own_from` on are this drafter's prediction. It replaces an earlier one that is not
  // answered yet only if it is `verified`.
  void Predict(const Proposal& proposal, size_t own_from, bool verified);

  // Appends to `survival` the chances that the proposal's tokens from `own_from` on survive; `survival` holds those of
  // the tokens before. `blind`: without looking at the tokens and their confidence.
  void AppendSurvival(const Proposal& proposal, size_t own_from, bool blind, std::vector<double>* survival) const;

  DrafterId id;
  std::unique_ptr<Drafter> drafter;
  AcceptanceModel acceptance;
  std::vector<Proposal> proposals;  // by sequence, reused from step to step
  RecentMean token_seconds;         // if it computes: one more token for all drafts of a step
  RecentMean read_seconds;          // if it computes: to read a token of a history
  double trial_seconds = 0;         // spent while it was not worth its cost

 private:
  struct Prediction {
    std::vector<DraftToken> tokens;
    size_t own_from = 0;  // the tokens before are another drafter's, which this one continued
    size_t answered = 0;  // tokens that were compared with the target's

    bool open() const { return answered < tokens.size(); }
    void Close() { answered = tokens.size(); }
  };

  std::vector<Prediction> predictions_;  // by sequence
};

}  // namespace outrider
