// What the guards of the server look at, of a request whose head the loop has read and of one that httplib has parsed.
#pragma once

#include <cpp-httplib/httplib.h>

#include <array>
#include <string>
#include <string_view>

#include "http/auth.h"
#include "http/browser_guard.h"
#include "http/request_reader.h"

namespace outrider {

// Points into the request.
struct Entry {
  RequestSource source;
  std::string_view path, authorization, x_api_key, accept;
};

Entry EntryOf(const RequestHead& head);
Entry EntryOf(const httplib::Request& request);

// The key that was sent with the request; null if it is none of `keys`.
const ApiKey* KeyOf(const ApiKeys& keys, const Entry& entry);
const ApiKey* KeyOf(const ApiKeys& keys, const httplib::Request& request);
std::string OwnerOf(const ApiKeys& keys, const httplib::Request& request);  // the key's name; "" without one

// What comes after `prefix`, from the slash on; "" if the path does not begin with it.
std::string_view WithoutPrefix(std::string_view path, std::string_view prefix);

// Probes: what monitoring asks for all the time. They are answered by workers of their own, whatever the others do, and
// are not counted among the requests of a key.
inline constexpr std::array<const char*, 2> kHealthPaths = {"/health", "/v1/health"};
inline constexpr const char* kMetricsPath = "/metrics";
bool IsProbePath(std::string_view path);

bool IsOpenPath(std::string_view path);  // needs no key: kHealthPaths

}  // namespace outrider
