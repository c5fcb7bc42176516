#include "scheduler/verifier.h"

#include "sampling/gumbel.h"
#include "spec/verify.h"

namespace outrider {

void Verifier::Verify(std::span<StepEntry> entries) {
  for (StepEntry& entry : entries) {
    entry.sequence->drawn.clear();
    if (entry.logits_row < 0) continue;
    const TimePoint start = clock_.Now();
    entry.accepted = WalkDraft(
        entry.draft, [&](int row) { return DrawRow(entry, row); },
        [&](int, Token token) { return KeepDrawn(*entry.sequence, token); });
    entry.draw_time = clock_.Now() - start;
  }
}

Token Verifier::DrawRow(const StepEntry& entry, int row) {
  Sampler& sampler = *entry.sequence->sampler;
  const auto position = static_cast<Pos>(entry.sequence->tokens.size()) + row;
  const Token token = sampler.Draw(engine_.Logits(entry.logits_row + row), position);
  const auto place = static_cast<size_t>(row);
  const bool drafted = place < entry.draft.size() && token != kNoToken;
  if (!drafted || ModeFor(entry.sequence->generation->request()) == VerifyMode::kMatch) return token;

  target_.clear();
  for (const Candidate& c : sampler.LastCandidates()) target_.push_back({c.token, c.probability});
  const auto& distributions = speculator_.draft(entry.sequence->id).distributions;
  const std::span<const TokenProbability> drawn_from = place < distributions.size()
                                                           ? std::span<const TokenProbability>(distributions[place])
                                                           : std::span<const TokenProbability>();
  return DrawByRejection(target_, entry.draft[place].token, drawn_from,
                         PositionCoin(sampler.seed(), position, Coin::kAcceptDraft),
                         PositionCoin(sampler.seed(), position, Coin::kResidual));
}

// With a grammar, rejection sampling is not possible: the sampler constrains the whole vocabulary only if needed, so
// the distribution that a token was drawn from is not known. Then kMatch is used.
VerifyMode Verifier::ModeFor(const GenerationRequest& request) const {
  return request.sampling.grammar.text.empty() ? mode_ : VerifyMode::kMatch;
}

// Returns whether another token may follow.
bool Verifier::KeepDrawn(Sequence& sequence, Token token) const {
  const GenerationRequest& request = sequence.generation->request();
  const bool ends = token != kNoToken && tokenizer_.EndsGeneration(token);
  DrawnToken& drawn = sequence.drawn.emplace_back(DrawnToken{token, ends});
  if (token == kNoToken || ends) return false;
  if (request.top_logprobs >= 0 && request.probabilities_after_filters)
    drawn.candidates = sequence.sampler->LastCandidates();
  sequence.sampler->Accept(token);
  return true;
}

}  // namespace outrider
