#include "drafters/draft_selection.h"

#include <algorithm>

namespace outrider {

double WorthOf(std::span<const double> survival, double row_price) {
  double worth = 0, best = 0;
  for (const double chance : survival) best = std::max(best, worth += chance - row_price);
  return best;
}

std::span<const double> DraftSelection::survival(SeqId seq) const {
  const Best& best = Of(seq);
  return best.draft.empty() ? std::span<const double>() : best.survival;
}

bool DraftSelection::MayBeContinued(SeqId seq) const {
  return !draft(seq).empty() && survival(seq).back() >= min_joint_survival_;
}

void DraftSelection::Offer(DrafterRecord& record, Proposal& proposal, bool blind, double row_price) {
  std::vector<DraftToken>& tokens = proposal.draft.tokens;
  const auto first_own =
      std::find_if(tokens.begin(), tokens.end(), [](const DraftToken& t) { return t.source == kNoDrafter; });
  const auto own_from = static_cast<size_t>(first_own - tokens.begin());
  for (size_t i = own_from; i < tokens.size(); ++i) tokens[i].source = record.id;
  if (own_from == tokens.size()) return;

  Best& best = Of(proposal.seq);
  offered_.assign(best.survival.begin(), best.survival.begin() + static_cast<std::ptrdiff_t>(own_from));
  record.AppendSurvival(proposal, own_from, blind, &offered_);
  const bool better =
      best.draft.empty() || own_from > 0 || WorthOf(offered_, row_price) > WorthOf(best.survival, row_price);
  record.Predict(proposal, own_from, better);
  if (!better) return;
  std::swap(best.draft, proposal.draft);
  std::swap(best.survival, offered_);
}

void DraftSelection::Cut(SeqId seq, int rows) {
  Draft& draft = Of(seq).draft;
  draft.tokens.resize(static_cast<size_t>(rows));
  if (!draft.distributions.empty()) draft.distributions.resize(static_cast<size_t>(rows));
}

}  // namespace outrider
