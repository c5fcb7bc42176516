#include "http/browser_guard.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

int StatusOf(const BrowserGuard& guard, const RequestSource& source) {
  const auto refusal = guard.Check(source);
  return refusal ? refusal->http_status : 200;
}

RequestSource To(std::string_view host) {
  return {.method = "GET", .host = host};
}

TEST(BrowserGuardTest, HostsThatAreOurs) {
  const BrowserGuard guard({.listen_host = "gpu-box", .allowed_hosts = {"llm.Example.org"}});
  for (const char* host : {"", "localhost", "localhost:8080", "LOCALHOST:1", "localhost.", "app.localhost:80",
                           "127.0.0.1:8080", "127.3.2.1", "[::1]:8080", "[::1]", "192.168.1.7:8080", "gpu-box:8080",
                           "llm.example.org", "LLM.example.org:443", "llm.example.org."}) {
    EXPECT_EQ(StatusOf(guard, To(host)), 200) << host;
  }
  for (const char* host : {"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
                           "notlocalhost", "xllm.example.org", "a.llm.example.org", "localhost:80:evil", "localhost:x",
                           "[::1", "[]", "0x7f.1", "localhost@evil.example", "gpu-box.evil", ":8080", "*"}) {
    EXPECT_EQ(StatusOf(guard, To(host)), 403) << host;
  }
  const auto refusal = guard.Check(To("evil.example:8080"));
  EXPECT_NE(refusal->status.message().find("--allowed-host evil.example"), std::string::npos)
      << refusal->status.message();
  EXPECT_EQ(StatusOf(BrowserGuard({.allowed_hosts = {"*"}}), To("evil.example")), 200);
}

TEST(BrowserGuardTest, OriginsThatMayCall) {
  const BrowserGuard guard({.listen_host = "127.0.0.1", .cors_origins = {"https://example.org/", "null"}});
  const auto of_page = [](std::string_view origin, std::string_view host = "localhost:8080") {
    return RequestSource{
        .method = "POST", .host = host, .origin = origin, .content_type = "application/json", .has_body = true};
  };
  EXPECT_EQ(StatusOf(guard, of_page("http://localhost:8080")), 200) << "the server's own page";
  EXPECT_EQ(StatusOf(guard, of_page("http://127.0.0.1:8080", "127.0.0.1:8080")), 200);
  EXPECT_EQ(StatusOf(guard, of_page("https://localhost:8080")), 200) << "behind a proxy with TLS";
  EXPECT_EQ(StatusOf(guard, of_page("https://example.org")), 200);
  EXPECT_EQ(StatusOf(guard, of_page("https://EXAMPLE.org")), 200);
  EXPECT_EQ(StatusOf(guard, of_page("null")), 200) << "named";
  for (const char* origin :
       {"https://evil.example", "http://example.org", "https://example.org.evil.example", "http://localhost:3000",
        "http://localhost", "https://example.org:8443", "file://", "localhost:8080", "ftp://localhost:8080"}) {
    EXPECT_EQ(StatusOf(guard, of_page(origin)), 403) << origin;
  }
  EXPECT_EQ(StatusOf(guard, of_page("http://evil.example", "evil.example")), 403) << "rebinding";
  EXPECT_EQ(StatusOf(guard, of_page("http://", "")), 403) << "no Host to be the same as";
  EXPECT_EQ(StatusOf(BrowserGuard({}), of_page("null")), 403) << "a sandboxed page";
  EXPECT_EQ(StatusOf(BrowserGuard({.cors_origins = {"*"}}), of_page("https://anybody.example")), 200);

  EXPECT_EQ(guard.AllowedOrigin("https://example.org"), "https://example.org");
  EXPECT_EQ(guard.AllowedOrigin("http://localhost:8080"), "") << "needs no permission";
  EXPECT_EQ(guard.AllowedOrigin("https://evil.example"), "");
  EXPECT_EQ(guard.AllowedOrigin(""), "");
  EXPECT_EQ(BrowserGuard({.cors_origins = {"*"}}).AllowedOrigin("https://anybody.example"), "*");
}

TEST(BrowserGuardTest, PagesOfThisMachineMayBeAllowedAsLlamaCppSaysIt) {
  const BrowserGuard guard({.cors_origins = {"localhost"}});
  for (const char* origin : {"http://localhost", "http://localhost:8080", "http://127.0.0.1:3000", "http://[::1]:3000",
                             "https://LOCALHOST:1"}) {
    EXPECT_EQ(guard.AllowedOrigin(origin), origin);
  }
  for (const char* origin : {"http://web.mydomain.fr", "http://notlocalhost", "http://localhost.evil.com", "null", "",
                             "http://127.0.0.1.evil.com", "http://evil.com/localhost", "http://localhost@evil.com"}) {
    EXPECT_EQ(guard.AllowedOrigin(origin), "") << origin;
  }
}

TEST(BrowserGuardTest, WhatForeignPagesEmbed) {
  const BrowserGuard guard({});
  RequestSource source{.method = "GET", .host = "localhost", .fetch_site = "cross-site", .fetch_mode = "no-cors"};
  EXPECT_EQ(StatusOf(guard, source), 403);
  source.fetch_site = "same-site";  // http://localhost:3000
  EXPECT_EQ(StatusOf(guard, source), 403);
  source.fetch_mode = "navigate";
  EXPECT_EQ(StatusOf(guard, source), 200) << "a link may be followed";
  source.method = "POST";
  EXPECT_EQ(StatusOf(guard, source), 403) << "but no form sent";
  for (const char* site : {"same-origin", "none"}) {
    source = {.method = "GET", .host = "localhost", .fetch_site = site, .fetch_mode = "cors"};
    EXPECT_EQ(StatusOf(guard, source), 200) << site;
  }
}

TEST(BrowserGuardTest, BrowsersSendJson) {
  const BrowserGuard guard({});
  RequestSource page{
      .method = "POST", .host = "localhost", .origin = "http://localhost", .content_type = "", .has_body = true};
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "text/plain;application/json"}) {
    page.content_type = type;
    EXPECT_EQ(StatusOf(guard, page), 415) << type;
  }
  for (const char* type : {"application/json", "Application/JSON; charset=utf-8", "application/json ;x=y"}) {
    page.content_type = type;
    EXPECT_EQ(StatusOf(guard, page), 200) << type;
  }
  page.content_type = "text/plain";
  page.has_body = false;
  EXPECT_EQ(StatusOf(guard, page), 200);
  const RequestSource program{.method = "POST",
                              .host = "localhost",
                              .fetch_mode = "cors",  // Node.js sends this, too
                              .content_type = "text/plain",
                              .has_body = true};
  EXPECT_EQ(StatusOf(guard, program), 200) << "curl -d and the like work as ever";
}

}  // namespace
}  // namespace outrider
