// The endpoints that take JSON and give JSON without generating text: tokens, templates, embeddings, ranking. What they
// answer is in api/info.h; this only says under which paths.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "http/server.h"

namespace outrider {

struct JsonRoute {
  std::string path;
  std::function<Result<Json>(const Json&)> answer;
};

// `services` must outlive the routes.
std::vector<JsonRoute> JsonRoutes(const Services& services);

}  // namespace outrider
