// The endpoints that take JSON and give JSON and compute little: tokens and templates. What they answer is in
// api/info.h and api/input_tokens.h; this only says under which paths.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/protocol.h"

namespace outrider {

struct JsonRoute {
  std::string path;
  std::function<Result<Json>(const Json&)> answer;
};

// `api` must outlive the routes.
std::vector<JsonRoute> JsonRoutes(const ApiContext& api);

}  // namespace outrider
