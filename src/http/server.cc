#include "http/server.h"

#include <cpp-httplib/httplib.h>
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <map>
#include <new>

#include "api/fields.h"
#include "api/messages.h"
#include "base/log.h"
#include "base/metrics_writer.h"
#include "http/browser_guard.h"
#include "http/generation_answer.h"
#include "http/guarded_server.h"
#include "http/key_limits.h"
#include "http/page_routes.h"
#include "http/slots.h"

namespace outrider {
namespace {

using httplib::Request;
using httplib::Response;

constexpr int kMaxGenerations = 1024;  // each has a thread
constexpr int kSpareWorkers = 16;      // for requests that do not generate, however many do

void SendJson(Response& response, const Json& body, int status = 200) {
  response.status = status;
  response.set_content(DumpJson(body) + "\n", "application/json");
}

// The error in the shape that clients of the endpoint expect.
Json ErrorJson(std::string_view path, const Status& error) {
  return path.starts_with("/v1/messages") ? AnthropicError(error) : OpenAiError(error);
}

void SendError(const Request& request, Response& response, const Status& error, int status) {
  SendJson(response, ErrorJson(request.path, error), status);
}

void SendError(const Request& request, Response& response, const Status& error) {
  SendError(request, response, error, HttpStatus(error.code()));
}

void SendResult(const Request& request, Response& response, const Result<Json>& result) {
  result.ok() ? SendJson(response, *result) : SendError(request, response, result.status());
}

// Needs no key.
bool IsOpenPath(std::string_view path) {
  return path == "/health" || path == "/v1/health";
}

// Is not counted among the requests of a key.
bool IsFreePath(std::string_view path) {
  return IsOpenPath(path) || path == "/metrics";
}

constexpr const char* kWelcome =
    "Outrider is running.\n\n"
    "  POST /v1/chat/completions   OpenAI chat          POST /completion     llama.cpp completion\n"
    "  POST /v1/completions        OpenAI completions   POST /tokenize       text to tokens\n"
    "  POST /v1/responses          OpenAI responses     POST /detokenize     tokens to text\n"
    "  POST /v1/messages           Anthropic messages   POST /apply-template messages to prompt\n"
    "  POST /v1/embeddings         embeddings           GET  /v1/models      the model\n"
    "  GET  /health  /props  /slots  /metrics           what the server is doing\n"
    "  GET  /live                                       the same, as a stream of snapshots\n";

// What the guards look at, of a request whose head the loop has read and of one that httplib has parsed.
struct Entry {
  RequestSource source;
  std::string_view path, authorization, x_api_key, accept;
};

Entry EntryOf(const RequestHead& head) {
  return {{head.method(), head.Header("Host"), head.Header("Origin"), head.Header("Sec-Fetch-Site"),
           head.Header("Sec-Fetch-Mode"), head.Header("Content-Type"), /*has_body=*/true},
          head.path(),
          head.Header("Authorization"),
          head.Header("x-api-key"),
          head.Header("Accept")};
}

Entry EntryOf(const Request& request) {
  const auto header = [&request](const char* name) -> std::string_view {
    const auto [first, end] = request.headers.equal_range(name);
    return first == end ? std::string_view() : std::string_view(first->second);
  };
  return {{request.method, header("Host"), header("Origin"), header("Sec-Fetch-Site"), header("Sec-Fetch-Mode"),
           header("Content-Type"),
           request.has_header("Transfer-Encoding") || request.get_header_value_u64("Content-Length") > 0},
          request.path,
          header("Authorization"),
          header("x-api-key"),
          header("Accept")};
}

ConnectionLimits LimitsOf(const HttpOptions& options) {
  const auto seconds = [](double value) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
  };
  ConnectionLimits limits;
  limits.idle = std::chrono::seconds(options.idle_seconds);
  limits.head = seconds(options.head_seconds);
  limits.body = seconds(options.body_seconds);
  limits.silence = std::chrono::seconds(options.timeout_seconds);
  limits.connections = options.max_connections;
  limits.connections_per_peer = options.max_connections_per_peer;
  limits.buffered_bytes = options.max_buffered_bytes;
  limits.request.max_body_bytes = options.max_body_bytes;
  limits.workers = std::min(options.max_generations, kMaxGenerations) + kSpareWorkers;
  return limits;
}

}  // namespace

struct HttpServer::Impl {
  const HttpOptions options;
  const Services services;
  PageRoutes page;
  const BrowserGuard browser_guard;
  KeyLimiter key_limiter;
  std::atomic<int> generating = 0;
  std::multimap<std::string, std::string> methods;  // from path to the methods it accepts; for status 405
  GuardedServer server;

  Impl(HttpOptions http_options, Services http_services)
      : options(std::move(http_options)),
        services(http_services),
        page(options.page, services),
        browser_guard({options.host, options.allowed_hosts, options.cors_origins}),
        server(LimitsOf(options), std::chrono::seconds(options.timeout_seconds),
               {.wants_body = [this](const RequestHead& head) { return !Check(EntryOf(head)); },
                .error_body = [](const RequestHead& head,
                                 const Status& why) { return DumpJson(ErrorJson(head.path(), why)) + "\n"; },
                .answered = [this](const AnsweredRequest& request) { Audit(request); }}) {
    AddGuards();
    AddRoutes();
  }

  void Get(const std::string& path, GuardedServer::Handler handler) {
    methods.emplace(path, "GET");
    server.Get(path, std::move(handler));
  }

  void Post(const std::string& path, GuardedServer::Handler handler) {
    methods.emplace(path, "POST");
    server.Post(path, std::move(handler));
  }

  // An endpoint from JSON to JSON.
  void PostJson(const std::string& path, std::function<Result<Json>(const Json&)> answer) {
    Post(path, [answer = std::move(answer)](const Request& request, Response& response) {
      auto body = ParseJson(request.body);
      SendResult(request, response, body.ok() ? answer(*body) : Result<Json>(body.status()));
    });
  }

  // An endpoint that generates.
  void PostGenerate(const std::string& path, ParseRequest parse) {
    Post(path, [this, parse](const Request& request, Response& response) {
      const std::shared_ptr<void> counted(nullptr, [this](void*) { --generating; });
      if (++generating > std::min(options.max_generations, kMaxGenerations)) {
        return SendLimit(request, response, RetryAfter(),
                         {StatusCode::kResourceExhausted, "too many requests are running or waiting (limit: --queue)"});
      }
      if (request.is_connection_closed()) return;  // nothing is computed for a client that is gone
      const ApiKey* key = KeyOf(request);
      std::shared_ptr<KeyLimiter::Lease> lease;
      if (const auto hit = key_limiter.Begin(key, &lease)) {
        return SendLimit(request, response, hit->retry_after_seconds, hit->status);
      }
      auto body = ParseJson(request.body);
      if (!body.ok()) return SendError(request, response, body.status());
      auto parsed = parse(*body, key == nullptr ? "" : key->name, services.api);
      if (!parsed.ok()) return SendError(request, response, parsed.status());
      auto generation = services.scheduler.Submit(std::move(parsed->generation));
      if (!generation.ok()) {
        if (generation.status().code() != StatusCode::kResourceExhausted)
          return SendError(request, response, generation.status());
        return SendLimit(request, response, RetryAfter(), generation.status());
      }
      AnswerWith(std::make_shared<AnsweredGeneration>(std::move(*generation), std::move(parsed->writer),
                                                      std::move(lease), counted),
                 parsed->stream, request, response, [&](const Status& error) { SendError(request, response, error); });
    });
  }

  static void SendLimit(const Request& request, Response& response, int retry_after_seconds, const Status& error) {
    response.set_header("Retry-After", std::to_string(retry_after_seconds));
    SendError(request, response, error);
  }

  int RetryAfter() const {
    const SchedulerStats stats = services.scheduler.Stats();
    uint64_t finished = 0;
    for (uint64_t n : stats.finished) finished += n;
    const double mean_seconds =
        finished > 0 ? (stats.prompt_seconds + stats.generate_seconds) / static_cast<double>(finished) : 1;
    return std::clamp(static_cast<int>(std::ceil(mean_seconds)), 1, 60);
  }

  void AddRoutes() {
    const ApiContext& api = services.api;
    page.AddTo([this](const std::string& path, httplib::Server::Handler handler) { Get(path, std::move(handler)); },
               kWelcome);
    for (const char* path : {"/health", "/v1/health"}) {
      Get(path, [](const Request&, Response& response) { SendJson(response, {{"status", "ok"}}); });
    }
    for (const char* path : {"/v1/models", "/models"}) {
      Get(path,
          [this](const Request&, Response& response) { SendJson(response, ModelsJson(services.api, services.info)); });
    }
    Get("/props",
        [this](const Request&, Response& response) { SendJson(response, PropsJson(services.api, services.info)); });
    Get("/slots", [this](const Request& request, Response& response) {
      if (!options.slots) return SendError(request, response, Unsupported("this server was started with --no-slots"));
      SendJson(response, SlotsJson(services.scheduler.Slots(), services.api));
    });
    Get("/metrics", [this](const Request&, Response& response) {
      response.set_content(MetricsText(services.scheduler.Stats()), kMetricsContentType);
    });

    for (const char* path : {"/v1/chat/completions", "/chat/completions"}) PostGenerate(path, ParseChatCompletion);
    PostGenerate("/v1/completions", ParseTextCompletion);
    for (const char* path : {"/v1/responses", "/responses"}) PostGenerate(path, ParseResponse);
    PostGenerate("/v1/messages", ParseMessages);
    for (const char* path : {"/completion", "/completions"}) PostGenerate(path, ParseLlamaCompletion);

    PostJson("/tokenize", [&api](const Json& body) { return TokenizeJson(body, api); });
    PostJson("/detokenize", [&api](const Json& body) { return DetokenizeJson(body, api); });
    PostJson("/apply-template", [&api](const Json& body) { return ApplyTemplateJson(body, api); });
    PostJson("/v1/messages/count_tokens", [&api](const Json& body) { return CountMessageTokens(body, api); });
    for (const char* path : {"/v1/embeddings", "/embeddings"}) {
      PostJson(path, [this](const Json& body) -> Result<Json> {
        if (services.embedder == nullptr) return Unsupported("start the server with --embeddings to get embeddings");
        return EmbeddingsJson(body, services.api, *services.embedder);
      });
    }
    Post("/slots/:id", [this](const Request& request, Response& response) {
      if (const ApiKey* key = KeyOf(request); options.api_keys.required() && (key == nullptr || !key->admin)) {
        return SendError(request, response,
                         PermissionDenied("slots are saved, restored and erased only with an admin key (--admin-key, "
                                          "or the word admin in --api-key-file)"));
      }
      const std::string id = request.path_params.at("id"), action = request.get_param_value("action");
      SendResult(request, response,
                 SlotAction(id, action, request.body, options.slot_save_path, services.info.model_fingerprint,
                            services.scheduler));
    });
  }

  const ApiKey* KeyOf(const Request& request) const {
    const Entry entry = EntryOf(request);
    return options.api_keys.Find(entry.authorization, entry.x_api_key);
  }

  // Whether the request is refused because of who sends it. One rule, asked before the body is read and again, for the
  // answer, when httplib has parsed the request.
  std::optional<Refusal> Check(const Entry& entry) const {
    if (auto refusal = browser_guard.Check(entry.source)) return refusal;
    const bool preflight = entry.source.method == "OPTIONS" && !entry.source.origin.empty();  // carries no key
    if (!options.api_keys.required() || IsOpenPath(entry.path) || preflight) return std::nullopt;
    if (page.IsOpen(std::string(entry.path), std::string(entry.accept))) return std::nullopt;
    if (options.api_keys.Find(entry.authorization, entry.x_api_key) != nullptr) return std::nullopt;
    return Refusal{
        401, Status(StatusCode::kUnauthenticated, "a valid API key is needed: send it as 'Authorization: Bearer KEY'")};
  }

  // What browsers ask for before they let a page of another origin call.
  static void AnswerPreflight(const Request& request, Response& response) {
    const std::string asked = request.get_header_value("Access-Control-Request-Headers");
    response.status = 204;
    response.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    response.set_header("Access-Control-Allow-Headers",
                        asked.empty() ? "Authorization, Content-Type, x-api-key, anthropic-version" : asked);
    response.set_header("Access-Control-Max-Age", "600");
    if (request.has_header("Access-Control-Request-Private-Network"))
      response.set_header("Access-Control-Allow-Private-Network", "true");
  }

  // True if the request has been answered.
  bool Guard(const Request& request, Response& response) {
    const Entry entry = EntryOf(request);
    const std::string allowed_origin = browser_guard.AllowedOrigin(entry.source.origin);
    if (!allowed_origin.empty()) {
      response.set_header("Access-Control-Allow-Origin", allowed_origin);
      response.set_header("Access-Control-Expose-Headers", "Retry-After");
      if (allowed_origin != "*") response.set_header("Vary", "Origin");
    }
    if (const auto refusal = Check(entry)) {
      if (refusal->http_status == 401) response.set_header("WWW-Authenticate", "Bearer");
      SendError(request, response, refusal->status, refusal->http_status);
      return true;
    }
    if (request.method == "OPTIONS" && !allowed_origin.empty()) {
      AnswerPreflight(request, response);
      return true;
    }
    if (IsFreePath(request.path)) return false;
    const auto hit = key_limiter.TakeRequest(KeyOf(request));
    if (hit) SendLimit(request, response, hit->retry_after_seconds, hit->status);
    return hit.has_value();
  }

  // One line per request, with the name of the key and never the key itself.
  void Audit(const AnsweredRequest& request) const {
    const bool audited = options.api_keys.required() && !IsFreePath(request.head.path());
    if (!LogEnabled(audited ? LogLevel::kInfo : LogLevel::kDebug)) return;
    const Entry entry = EntryOf(request.head);
    const ApiKey* key = options.api_keys.Find(entry.authorization, entry.x_api_key);
    constexpr size_t kMaxPath = 100;
    const std::string line =
        fmt::format("{} {} {} by {} from {}, {} bytes in {:.0f} ms", entry.source.method.substr(0, kMaxPath),
                    entry.path.substr(0, kMaxPath), request.http_status, key == nullptr ? "nobody" : key->name,
                    request.peer.address, request.bytes_written, Milliseconds(request.duration));
    LogLine(audited ? LogLevel::kInfo : LogLevel::kDebug, line);
  }

  void AddGuards() {
    server.set_pre_routing_handler([this](const Request& request, Response& response) {
      return Guard(request, response) ? GuardedServer::HandlerResponse::Handled
                                      : GuardedServer::HandlerResponse::Unhandled;
    });
    // Errors that httplib itself finds have no body yet.
    server.set_error_handler([this](const Request& request, Response& response) {
      if (!response.body.empty()) return;
      const int status = response.status;
      if (status == 404) {
        if (const auto known = methods.find(request.path); known != methods.end() && known->second != request.method) {
          response.set_header("Allow", known->second);
          return SendError(request, response, InvalidArgument(fmt::format("{} takes {}", request.path, known->second)),
                           405);
        }
        return SendError(
            request, response,
            NotFound(fmt::format("{} {} does not exist; GET / lists what does", request.method, request.path)));
      }
      const std::string message =
          status == 413 ? fmt::format("the body is larger than {} bytes (--max-body)", options.max_body_bytes)
                        : fmt::format("the request could not be read (HTTP {})", status);
      SendError(request, response, InvalidArgument(message), status);
    });
    server.set_exception_handler([](const Request& request, Response& response, std::exception_ptr exception) {
      std::string what = "unknown exception";
      try {
        std::rethrow_exception(exception);
      } catch (const std::bad_alloc&) {
        LogError("{} {} failed: out of memory", request.method, request.path);
        return SendError(request, response, Unavailable("the server has not enough memory for this request"));
      } catch (const std::exception& error) {
        what = error.what();
      } catch (...) {
      }
      LogError("{} {} failed: {}", request.method, request.path, what);
      SendError(request, response, Internal("the server failed to answer this request; its log says why"));
    });
  }
};

HttpServer::HttpServer(HttpOptions options, Services services)
    : impl_(std::make_unique<Impl>(std::move(options), services)) {}

HttpServer::~HttpServer() = default;

Status HttpServer::Listen() {
  return impl_->server.Listen(impl_->options.host, impl_->options.port);
}

int HttpServer::port() const {
  return impl_->server.port();
}
void HttpServer::Serve() {
  impl_->server.Serve();
}
void HttpServer::Stop(Duration max_wait) {
  impl_->page.Stop();
  impl_->server.Stop(max_wait);
}

}  // namespace outrider
