// BrowserGuard: which web pages may use the server. A browser sends requests for any page that its user has open, also
// to servers that only this machine reaches; and a page whose name suddenly resolves to this machine (DNS rebinding)
// even counts as the server's own. So a request is refused unless
//   - its Host is ours: an IP address, localhost, the name that the server listens on, or one of `allowed_hosts` (a
//     name that somebody else controls can be made to resolve to us, an address cannot);
//   - its Origin, if it has one, is the server itself or one of `cors_origins`;
//   - it is not what a foreign page embeds or fetches without saying where it comes from (Sec-Fetch-Site);
//   - its body, if it comes from a browser, is JSON by its Content-Type, which a foreign page cannot send unasked.
// Clients that are no browsers send none of these headers except Host, and are not affected.
//
// Immutable and thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace outrider {

struct BrowserPolicy {
  std::string listen_host = {};                 // what the server listens on: a name or an address
  std::vector<std::string> allowed_hosts = {};  // more names by which it is called, without port; "*" = any
  std::vector<std::string> cors_origins = {};   // "https://example.org"; "localhost" = pages of this machine, at any
                                                // port; "*" = any page may call
};

// The headers that tell where a request comes from; "" = not there.
struct RequestSource {
  std::string_view method = {}, host = {}, origin = {}, fetch_site = {}, fetch_mode = {}, content_type = {};
  bool has_body = false;
};

// A refusal: kPermissionDenied, or an error with a status of its own.
struct Refusal {
  int http_status;
  Status status;
};

class BrowserGuard {
 public:
  explicit BrowserGuard(BrowserPolicy policy);

  std::optional<Refusal> Check(const RequestSource& source) const;

  // The value of Access-Control-Allow-Origin for a page of `origin`; "" = no such header.
  std::string AllowedOrigin(std::string_view origin) const;

 private:
  bool IsOurHost(std::string_view host_and_port) const;
  bool MayCall(const RequestSource& source) const;
  bool IsAllowed(const std::string& origin) const;  // in lower case

  const BrowserPolicy policy_;
  const bool any_host_, any_origin_, local_origins_;
};

}  // namespace outrider
