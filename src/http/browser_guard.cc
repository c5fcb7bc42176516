#include "http/browser_guard.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

namespace outrider {
namespace {

constexpr const char* kLocal = "localhost";  // llama.cpp's word for all pages of this machine

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

bool Contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool IsAddress(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// "localhost:8080" → "localhost", "[::1]:8080" → "::1", "Example.org." → "example.org"; "" if it is none of these.
std::string HostOf(std::string_view host_and_port) {
  std::string text = Lower(host_and_port);
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    return end == std::string::npos ? "" : text.substr(1, end - 1);
  }
  if (const size_t colon = text.find(':'); colon != std::string::npos) {
    if (text.find_first_not_of("0123456789", colon + 1) != std::string::npos) return "";
    text.resize(colon);
  }
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string MediaType(std::string_view content_type) {
  std::string type = Lower(content_type.substr(0, content_type.find(';')));
  while (type.ends_with(' ')) type.pop_back();
  return type;
}

BrowserPolicy Normalised(BrowserPolicy policy) {
  for (std::string& host : policy.allowed_hosts) host = Lower(host);
  for (std::string& origin : policy.cors_origins) {
    origin = Lower(origin);
    while (origin.ends_with('/')) origin.pop_back();
  }
  policy.listen_host = Lower(policy.listen_host);
  return policy;
}

}  // namespace

BrowserGuard::BrowserGuard(BrowserPolicy policy)
    : policy_(Normalised(std::move(policy))),
      any_host_(Contains(policy_.allowed_hosts, "*")),
      any_origin_(Contains(policy_.cors_origins, "*")),
      local_origins_(Contains(policy_.cors_origins, kLocal)) {}

bool BrowserGuard::IsOurHost(std::string_view host_and_port) const {
  if (any_host_ || host_and_port.empty()) return true;  // browsers always send it
  const std::string host = HostOf(host_and_port);
  if (host.empty()) return false;
  return host == "localhost" || host.ends_with(".localhost") || host == policy_.listen_host || IsAddress(host) ||
         Contains(policy_.allowed_hosts, host);
}

bool BrowserGuard::IsAllowed(const std::string& origin) const {
  if (Contains(policy_.cors_origins, origin)) return true;
  const size_t scheme = origin.find("://");
  if (!local_origins_ || scheme == std::string::npos) return false;
  const std::string host = HostOf(std::string_view(origin).substr(scheme + 3));
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

bool BrowserGuard::MayCall(const RequestSource& source) const {
  if (any_origin_) return true;
  if (!source.origin.empty()) {
    const std::string origin = Lower(source.origin);
    if (IsAllowed(origin)) return true;
    const std::string host = Lower(source.host);
    return !host.empty() && (origin == "http://" + host || origin == "https://" + host);
  }
  // Without an Origin: a link to us may be followed, but nothing of ours embedded.
  const bool foreign = source.fetch_site == "cross-site" || source.fetch_site == "same-site";
  return !foreign || (source.method == "GET" && source.fetch_mode == "navigate");
}

std::optional<Refusal> BrowserGuard::Check(const RequestSource& source) const {
  if (!IsOurHost(source.host)) {
    return Refusal{403, PermissionDenied(fmt::format("'{}' is not a name of this server; if it is, start the server "
                                                     "with --allowed-host {}",
                                                     source.host, HostOf(source.host)))};
  }
  if (!MayCall(source)) {
    const bool named = !source.origin.empty();
    return Refusal{403, PermissionDenied(fmt::format(
                            "pages of {} may not use this server; if they should, start the server with --cors-origin "
                            "{}, or, if this is its own page behind a proxy, let the proxy pass on the header Host",
                            named ? source.origin : "other sites", named ? source.origin : "ORIGIN"))};
  }
  const bool from_browser = !source.origin.empty() || !source.fetch_site.empty();
  if (from_browser && source.has_body && MediaType(source.content_type) != "application/json") {
    return Refusal{415, InvalidArgument("requests of web pages need the header 'Content-Type: application/json'")};
  }
  return std::nullopt;
}

std::string BrowserGuard::AllowedOrigin(std::string_view origin) const {
  if (any_origin_) return "*";
  return !origin.empty() && IsAllowed(Lower(origin)) ? std::string(origin) : "";
}

}  // namespace outrider
