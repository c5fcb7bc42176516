#include "scheduler/token_report.h"

#include <algorithm>
#include <cmath>

#include "sampling/logprobs.h"

namespace outrider {
namespace {

void AddFilteredLogprobs(std::span<const Candidate> candidates, int n_top, GeneratedToken* described) {
  for (const Candidate& candidate : candidates) {
    const float logprob = std::log(candidate.probability);
    if (candidate.token == described->token) described->logprob = logprob;
    if (static_cast<int>(described->top.size()) < n_top) described->top.push_back({candidate.token, logprob});
  }
}

void AddModelLogprobs(std::span<const float> logits, int n_top, GeneratedToken* described) {
  const double normaliser = LogSumExp(logits);
  const auto logprob = [&](Token t) { return static_cast<float>(logits[static_cast<size_t>(t)] - normaliser); };
  described->logprob = logprob(described->token);
  for (const Token best : BestTokens(logits, n_top)) described->top.push_back({best, logprob(best)});
}

}  // namespace

GeneratedToken DescribeToken(const GenerationRequest& request, const Tokenizer& tokenizer, Token token,
                             std::span<const Candidate> candidates, std::span<const float> logits,
                             std::string_view drafter) {
  GeneratedToken described;
  described.token = token;
  described.piece = tokenizer.Piece(token, request.show_special);
  described.drafter = drafter;
  if (request.top_logprobs < 0) return described;
  if (request.probabilities_after_filters) {
    AddFilteredLogprobs(candidates, request.top_logprobs, &described);
  } else {
    AddModelLogprobs(logits, request.top_logprobs, &described);
  }
  return described;
}

DraftedStep DescribeStep(const GenerationRequest& request, const Tokenizer& tokenizer,
                         std::span<const DraftToken> draft, int accepted, std::string_view drafter, double ms) {
  DraftedStep step{drafter, static_cast<int>(draft.size()), accepted, ms};
  const auto rejected = draft.subspan(static_cast<size_t>(accepted));
  for (const DraftToken& wrong : rejected.first(std::min<size_t>(rejected.size(), kMaxRejectedListed))) {
    step.rejected.push_back(tokenizer.Piece(wrong.token, request.show_special));
  }
  return step;
}

}  // namespace outrider
