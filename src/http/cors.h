// The headers by which a browser learns that a page of another origin may use the server. Who may is the browser
// guard's rule.
#pragma once

#include <cpp-httplib/httplib.h>

#include <string>

namespace outrider {

// Lets pages of `allowed_origin` (BrowserGuard::AllowedOrigin) read the response. False if that is "", no origin.
bool AllowOrigin(const std::string& allowed_origin, httplib::Response& response);

// Answers what browsers ask before they let a page of another origin call.
void AnswerPreflight(const httplib::Request& request, httplib::Response& response);

}  // namespace outrider
