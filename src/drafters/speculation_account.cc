#include "drafters/speculation_account.h"

namespace outrider {

SpeculationAccount::SpeculationAccount(const std::vector<std::string_view>& drafters, int n_sequences)
    : requests_(static_cast<size_t>(n_sequences)) {
  for (const std::string_view name : drafters) totals_.push_back({name});
}

void SpeculationAccount::BeginRequest(SeqId seq) {
  Of(seq) = {totals_};
  for (DrafterStats& stats : Of(seq).drafters) stats = {stats.name};
}

void SpeculationAccount::AddDrafting(DrafterId drafter, double seconds) {
  totals_[static_cast<size_t>(drafter)].seconds += seconds;
}

void SpeculationAccount::AddDraftingFor(SeqId seq, DrafterId drafter, double seconds) {
  Of(seq).drafters[static_cast<size_t>(drafter)].seconds += seconds;
}

void SpeculationAccount::AddVerified(SeqId seq, const Draft& draft, int accepted) {
  for (int i = 0; i < draft.size(); ++i) {
    const auto source = static_cast<size_t>(draft.tokens[static_cast<size_t>(i)].source);
    for (DrafterStats* stats : {&totals_[source], &Of(seq).drafters[source]}) {
      ++stats->verified;
      stats->accepted += i < accepted ? 1 : 0;
    }
  }
}

void SpeculationAccount::AddStep(SeqId seq, int tokens, double seconds, double plain_seconds) {
  Of(seq).seconds += seconds;
  Of(seq).plain_seconds += tokens * plain_seconds;
}

const std::vector<DrafterStats>& SpeculationAccount::stats(SeqId seq) const {
  return requests_[static_cast<size_t>(seq)].drafters;
}

double SpeculationAccount::speed_up(SeqId seq) const {
  const Request& request = requests_[static_cast<size_t>(seq)];
  return request.seconds > 0 ? request.plain_seconds / request.seconds : 1;
}

}  // namespace outrider
