#include "http/cors.h"

namespace outrider {

bool AllowOrigin(const std::string& allowed_origin, httplib::Response& response) {
  if (allowed_origin.empty()) return false;
  response.set_header("Access-Control-Allow-Origin", allowed_origin);
  response.set_header("Access-Control-Expose-Headers", "Retry-After");
  if (allowed_origin != "*") response.set_header("Vary", "Origin");
  return true;
}

void AnswerPreflight(const httplib::Request& request, httplib::Response& response) {
  const std::string asked = request.get_header_value("Access-Control-Request-Headers");
  response.status = 200;
  response.set_header("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
  response.set_header("Access-Control-Allow-Headers",
                      asked.empty() ? "Authorization, Content-Type, x-api-key, anthropic-version" : asked);
  response.set_header("Access-Control-Max-Age", "600");
  if (request.has_header("Access-Control-Request-Private-Network"))
    response.set_header("Access-Control-Allow-Private-Network", "true");
}

}  // namespace outrider
