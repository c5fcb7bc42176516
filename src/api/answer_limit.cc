#include "api/answer_limit.h"

#include <fmt/format.h>

#include "base/request_budget.h"

namespace outrider {
namespace {

Status LimitChoice(const ApiContext& context, int most, GenerationRequest* choice) {
  const int room = context.sequence_length - static_cast<int>(choice->prompt.size());
  if (choice->max_tokens < 0 || room <= most) {
    if (room > most) choice->max_tokens = most;
    return {};
  }
  if (choice->max_tokens <= most) return {};
  return InvalidArgument(fmt::format("must be at most {} with {} alternatives for each token, unless the answer is "
                                     "streamed",
                                     most, choice->top_logprobs),
                         "max_tokens");
}

}  // namespace

Status LimitWholeAnswer(const ApiContext& context, ParsedRequest* request) {
  const int alternatives = request->generation.top_logprobs;
  if (request->stream || alternatives <= 0) return {};
  const int most = kMaxWholeAlternatives / alternatives / static_cast<int>(request->more.size() + 1);
  if (Status status = LimitChoice(context, most, &request->generation); !status.ok()) return status;
  for (GenerationRequest& choice : request->more) {
    if (Status status = LimitChoice(context, most, &choice); !status.ok()) return status;
  }
  return {};
}

}  // namespace outrider
