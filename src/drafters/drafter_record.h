// DrafterRecord: a drafter and its record: how often its tokens are right, and what they cost.
//
// Each draft is also kept as a prediction, which is compared with the tokens that the target generates later, whether
// the draft was verified or not. So a drafter that is not used at present can show that it has become better.
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

  // The proposal's tokens from `own_from` on are this drafter's prediction. If an earlier prediction has not been
  // compared completely, this one replaces it only if it is going to be `verified`.
  void Predict(const Proposal& proposal, size_t own_from, bool verified);

  // Appends to `survival` the chances that the proposal's tokens from `own_from` on are accepted; `survival` already
  // holds those of the tokens before. `blind`: does not look at the tokens and their confidence.
  void AppendSurvival(const Proposal& proposal, size_t own_from, bool blind, std::vector<double>* survival) const;

  DrafterId id;
  std::unique_ptr<Drafter> drafter;
  AcceptanceModel acceptance;
  std::vector<Proposal> proposals;  // by sequence, reused from step to step
  RecentMean token_seconds;         // if it computes: time to make one more token for all drafts of a step
  RecentMean read_seconds;          // if it computes: time to read one token of a history
  double trial_seconds = 0;         // time spent on trials, while it was not worth its cost

 private:
  struct Prediction {
    std::vector<DraftToken> tokens;
    size_t own_from = 0;  // the tokens before this index come from another drafter, whose draft was continued
    size_t compared = 0;  // tokens that were compared with the target's

    bool open() const { return compared < tokens.size(); }
    void Close() { compared = tokens.size(); }
  };

  std::vector<Prediction> predictions_;  // by sequence
};

}  // namespace outrider
