#include "api/answer_limit.h"

#include <fmt/format.h>

#include "base/request_budget.h"

namespace outrider {

Status LimitWholeAnswer(const ApiContext& context, ParsedRequest* request) {
  GenerationRequest& generation = request->generation;
  if (request->stream || generation.top_logprobs <= 0) return {};
  const int most = kMaxWholeAlternatives / generation.top_logprobs;
  const int room = context.sequence_length - static_cast<int>(generation.prompt.size());
  if (generation.max_tokens < 0 || room <= most) {
    if (room > most) generation.max_tokens = most;
    return {};
  }
  if (generation.max_tokens <= most) return {};
  return InvalidArgument(fmt::format("must be at most {} with {} alternatives for each token, unless the answer is "
                                     "streamed",
                                     most, generation.top_logprobs),
                         "max_tokens");
}

}  // namespace outrider
