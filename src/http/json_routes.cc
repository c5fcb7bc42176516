#include "http/json_routes.h"

#include "api/info.h"
#include "api/input_tokens.h"

namespace outrider {

std::vector<JsonRoute> JsonRoutes(const ApiContext& api) {
  std::vector<JsonRoute> routes;
  const auto add = [&routes](std::initializer_list<const char*> paths, auto answer) {
    for (const char* path : paths) routes.push_back({path, answer});
  };
  add({"/tokenize"}, [&api](const Json& body) { return TokenizeJson(body, api); });
  add({"/detokenize"}, [&api](const Json& body) { return DetokenizeJson(body, api); });
  add({"/apply-template"}, [&api](const Json& body) { return ApplyTemplateJson(body, api); });
  add({"/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"},
      [&api](const Json& body) { return ChatInputTokens(body, api); });
  add({"/v1/responses/input_tokens", "/responses/input_tokens"},
      [&api](const Json& body) { return ResponseInputTokens(body, api); });
  add({"/v1/messages/count_tokens"}, [&api](const Json& body) { return MessageInputTokens(body, api); });
  return routes;
}

}  // namespace outrider
