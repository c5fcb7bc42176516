#include "http/server.h"

#include <cpp-httplib/httplib.h>
#include <fmt/format.h>

#include <map>

#include "api/embeddings.h"
#include "api/response_memory.h"
#include "base/log.h"
#include "base/metrics_writer.h"
#include "http/browser_guard.h"
#include "http/cors.h"
#include "http/endpoints.h"
#include "http/entry.h"
#include "http/guarded_server.h"
#include "http/json_answer.h"
#include "http/json_routes.h"
#include "http/key_limits.h"
#include "http/page_routes.h"
#include "http/preparation_lane.h"
#include "http/slots.h"
#include "http/welcome.h"

namespace outrider {
namespace {

using httplib::Request;
using httplib::Response;

constexpr int kSpareWorkers = 16;  // for requests that do not generate, however many do

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
  SlotActions slot_actions;
  PreparationLane lane;
  Endpoints endpoints;
  std::multimap<std::string, std::string> methods;  // from path to the methods it accepts; for status 405
  GuardedServer server;

  Impl(HttpOptions http_options, Services http_services)
      : options(std::move(http_options)),
        services(http_services),
        page(options.page, services),
        browser_guard({options.host, options.allowed_hosts, options.cors_origins}),
        slot_actions(options.slot_files, {services.info.model_fingerprint, services.adapters->Fingerprints()},
                     services.scheduler),
        lane(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.body_seconds))),
        endpoints(options, services, key_limiter, lane),
        server(LimitsOf(options), std::chrono::seconds(options.timeout_seconds),
               {.wants_body = [this](const RequestHead& head) { return !Check(RoutedEntryOf(head)); },
                .error_body =
                    [this](const RequestHead& head, const Status& why) {
                      return DumpJson(ErrorJson(RoutedEntryOf(head).path, why)) + "\n";
                    },
                .answered = [this](const AnsweredRequest& request) { Audit(request); }},
               options.tls, options.path_prefix) {
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

  // An endpoint that changes what others get, so that it needs an admin key where keys are needed. `what` is done by
  // it.
  void PostAsAdmin(const std::string& path, const std::string& what, GuardedServer::Handler handler) {
    Post(path, [this, what, handler = std::move(handler)](const Request& request, Response& response) {
      const ApiKey* key = KeyOf(options.api_keys, request);
      if (!options.api_keys.required() || (key != nullptr && key->admin)) return handler(request, response);
      const char* how = " only with an admin key (--admin-key, or the word admin in --api-key-file)";
      SendError(request, response, PermissionDenied(what + how));
    });
  }

  void AddResponseRoutes() {
    const char* path = "/v1/responses/:id";
    const auto answer_with = [this](auto find) {
      return [this, find](const Request& request, Response& response) {
        const std::string owner = OwnerOf(options.api_keys, request);
        SendResult(request, response, find(services.api, owner, request.path_params.at("id")));
      };
    };
    Get(path, answer_with(StoredResponse));
    server.Delete(path, answer_with(DeleteStoredResponse));
  }

  void PostGenerate(const std::string& path, ParseRequest parse) { Post(path, endpoints.Generating(parse)); }
  void PostEmbeddings(const std::string& path, ParseEmbeddingRequest parse) { Post(path, endpoints.Embedding(parse)); }

  void AddRoutes() {
    page.AddTo([this](const std::string& path, httplib::Server::Handler handler) { Get(path, std::move(handler)); },
               kWelcome, [this](const Request& request) { return ViewerOf(request); });
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
      SendJson(response, SlotsJson(services.scheduler.Slots(), ViewerOf(request), services.api));
    });
    Get("/metrics", [this](const Request&, Response& response) {
      response.set_header("Process-Start-Time-Unix", std::to_string(services.api.start_time));
      response.set_content(MetricsText(services.scheduler.Stats()), kMetricsContentType);
    });

    for (const char* path : {"/v1/chat/completions", "/chat/completions"}) PostGenerate(path, ParseChatCompletion);
    PostGenerate("/v1/completions", ParseTextCompletion);
    for (const char* path : {"/v1/responses", "/responses"}) PostGenerate(path, ParseResponse);
    PostGenerate("/v1/messages", ParseMessages);
    for (const char* path : {"/completion", "/completions"}) PostGenerate(path, ParseLlamaCompletion);

    for (const char* path : {"/infill", "/v1/infill"}) PostGenerate(path, ParseInfill);
    for (JsonRoute& route : JsonRoutes(services.api)) Post(route.path, endpoints.FromJson(std::move(route.answer)));
    PostEmbeddings("/v1/embeddings", ParseEmbeddings);
    for (const char* path : {"/embeddings", "/embedding"}) PostEmbeddings(path, ParseLlamaEmbeddings);
    for (const char* path : {"/v1/rerank", "/v1/reranking", "/rerank", "/reranking"}) PostEmbeddings(path, ParseRerank);
    AddResponseRoutes();
    PostAsAdmin(
        "/slots/:id", "slots are saved, restored and erased", [this](const Request& request, Response& response) {
          const std::string id = request.path_params.at("id"), action = request.get_param_value("action");
          SendResult(request, response, slot_actions.Act(id, action, request.body, OwnerOf(options.api_keys, request)));
        });
    Get("/lora-adapters",
        [this](const Request&, Response& response) { SendJson(response, services.adapters->Describe()); });
    PostAsAdmin("/lora-adapters", "the default scales of adapters are set",
                endpoints.FromJson([this](const Json& body) { return services.adapters->SetDefaults(body); }));
  }

  // With the path that a route has.
  Entry RoutedEntryOf(const RequestHead& head) const {
    Entry entry = EntryOf(head);
    entry.path = WithoutPrefix(entry.path, options.path_prefix);
    return entry;
  }

  Viewer ViewerOf(const Request& request) const {
    const ApiKey* key = KeyOf(options.api_keys, request);
    return {OwnerOf(options.api_keys, request), key != nullptr && key->admin};
  }

  // Whether the request is refused because of who sends it. One rule, asked before the body is read and again, for the
  // answer, when httplib has parsed the request.
  std::optional<Refusal> Check(const Entry& entry) const {
    if (auto refusal = browser_guard.Check(entry.source)) return refusal;
    const bool preflight = entry.source.method == "OPTIONS" && !entry.source.origin.empty();  // carries no key
    if (!options.api_keys.required() || IsOpenPath(entry.path) || preflight) return std::nullopt;
    if (page.IsOpen(std::string(entry.path), std::string(entry.accept))) return std::nullopt;
    if (KeyOf(options.api_keys, entry) != nullptr) return std::nullopt;
    return Refusal{
        401, Status(StatusCode::kUnauthenticated, "a valid API key is needed: send it as 'Authorization: Bearer KEY'")};
  }

  // True if the request has been answered.
  bool Guard(const Request& request, Response& response) {
    const Entry entry = EntryOf(request);
    const bool may_read = AllowOrigin(browser_guard.AllowedOrigin(entry.source.origin), response);
    if (const auto refusal = Check(entry)) {
      if (refusal->http_status == 401) response.set_header("WWW-Authenticate", "Bearer");
      SendError(request, response, refusal->status, refusal->http_status);
      return true;
    }
    if (request.method == "OPTIONS" && may_read) {
      AnswerPreflight(request, response);
      return true;
    }
    if (IsFreePath(request.path)) return false;
    const auto hit = key_limiter.TakeRequest(KeyOf(options.api_keys, request));
    if (hit) SendLimit(request, response, hit->retry_after_seconds, hit->status);
    return hit.has_value();
  }

  // One line per request, with the name of the key and never the key itself.
  void Audit(const AnsweredRequest& request) {
    constexpr size_t kMuch = 1 << 20;
    if (request.bytes_written > kMuch) lane.GiveMemoryBack();
    const Entry entry = RoutedEntryOf(request.head);
    const bool audited = options.api_keys.required() && !IsFreePath(entry.path);
    if (!LogEnabled(audited ? LogLevel::kInfo : LogLevel::kDebug)) return;
    const ApiKey* key = KeyOf(options.api_keys, entry);
    constexpr size_t kMaxPath = 100;
    const std::string line =
        fmt::format("{} {} {} by {} from {}, {} bytes in {:.0f} ms", entry.source.method.substr(0, kMaxPath),
                    request.head.path().substr(0, kMaxPath), request.http_status, key == nullptr ? "nobody" : key->name,
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
        const std::string asked = request.target.substr(0, request.target.find('?'));
        return SendError(request, response,
                         NotFound(fmt::format("{} {} does not exist; GET {}/ lists what does", request.method, asked,
                                              options.path_prefix)));
      }
      const std::string message =
          status == 413 ? fmt::format("the body is larger than {} bytes (--max-body)", options.max_body_bytes)
                        : fmt::format("the request could not be read (HTTP {})", status);
      SendError(request, response, InvalidArgument(message), status);
    });
    server.set_exception_handler([this](const Request& request, Response& response, std::exception_ptr exception) {
      lane.GiveMemoryBack();  // fills the reserve again
      SendException(request, response, std::move(exception));
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
