// SpeculationAccount: how many tokens were drafted and accepted and how long that took, by drafter and by request.
// Counts and sums only; nothing is decided here.
#pragma once

#include <string_view>
#include <vector>

#include "spec/draft.h"

namespace outrider {

class SpeculationAccount {
 public:
  // `drafters`: their names, which outlive this.
  SpeculationAccount(const std::vector<std::string_view>& drafters, int n_sequences);

  // A request begins in `seq`.
  void BeginRequest(SeqId seq);

  // A drafter took `seconds`. If it drafted for several sequences in this time, AddDraftingFor is called for each of
  // them with the whole time, and AddDrafting once.
  void AddDrafting(DrafterId drafter, double seconds);
  void AddDraftingFor(SeqId seq, DrafterId drafter, double seconds);

  // A draft was verified: its first `accepted` tokens were accepted.
  void AddVerified(SeqId seq, const Draft& draft, int accepted);

  // A step of the request in `seq` generated `tokens` tokens and took `seconds`, drafting included; each token would
  // have taken `plain_seconds` in plain decoding.
  void AddStep(SeqId seq, int tokens, double seconds, double plain_seconds);

  const std::vector<DrafterStats>& stats() const { return totals_; }  // by drafter, since the start
  const std::vector<DrafterStats>& stats(SeqId seq) const;            // of the request in `seq`, or the last one there
  double speed_up(SeqId seq) const;                                   // of that request; 1 if nothing is known

 private:
  struct Request {
    std::vector<DrafterStats> drafters;
    double seconds = 0;        // of the steps it took part in
    double plain_seconds = 0;  // what plain steps would have taken for the same tokens
  };

  Request& Of(SeqId seq) { return requests_[static_cast<size_t>(seq)]; }

  std::vector<DrafterStats> totals_;
  std::vector<Request> requests_;  // by sequence
};

}  // namespace outrider
