#include "http/server.h"

#include <cpp-httplib/httplib.h>
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <map>

#include "api/answer_limit.h"
#include "api/embeddings.h"
#include "api/fields.h"
#include "base/discard_json.h"
#include "base/log.h"
#include "base/metrics_writer.h"
#include "http/browser_guard.h"
#include "http/cors.h"
#include "http/entry.h"
#include "http/generation_answer.h"
#include "http/guarded_server.h"
#include "http/json_answer.h"
#include "http/json_routes.h"
#include "http/key_limits.h"
#include "http/page_routes.h"
#include "http/preparation_lane.h"
#include "http/server_limits.h"
#include "http/slots.h"
#include "http/welcome.h"

namespace outrider {
namespace {

using httplib::Request;
using httplib::Response;

}  // namespace

struct HttpServer::Impl {
  const HttpOptions options;
  const Services services;
  PageRoutes page;
  const BrowserGuard browser_guard;
  KeyLimiter key_limiter;
  SlotActions slot_actions;
  PreparationLane lane;
  std::atomic<int> generating = 0;                  // and embedding
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

  // How large a request is to the preparation lane. DRY's sequence breakers are looked for in the whole vocabulary,
  // which takes up to a tenth of a second for each.
  static size_t WeightOf(const Request& request) {
    const bool dear = request.body.find("dry_sequence_breakers") != request.body.npos;
    return request.body.size() + (dear ? PreparationLane::kSmallBytes : 0);
  }

  // Runs what may take long for a large request. Nothing is computed for a client that is gone.
  void Prepare(const Request& request, Response& response, const std::function<void()>& job) {
    const Status status = lane.Run(
        WeightOf(request), [&] { return !request.is_connection_closed(); }, job);
    if (!status.ok()) SendLimit(request, response, RetryAfter(), status);
  }

  Result<Json> ParseBody(const Request& request) const {
    return ParseJson(request.body, options.json, [&] { return !request.is_connection_closed(); });
  }

  // An endpoint from JSON to JSON.
  void PostJson(const std::string& path, std::function<Result<Json>(const Json&)> answer) {
    Post(path, [this, answer = std::move(answer)](const Request& request, Response& response) {
      Prepare(request, response, [&] {
        auto body = ParseBody(request);
        const DiscardedJson discarded(&body);
        auto result = body.ok() ? answer(*body) : Result<Json>(body.status());
        const DiscardedJson discarded_too(&result);
        SendResult(request, response, result);
      });
    });
  }

  // An endpoint that changes what others get, so that it needs an admin key where keys are needed. `what` is done by
  // it.
  void PostAsAdmin(const std::string& path, const std::string& what,
                   std::function<Result<Json>(const Request&)> answer) {
    Post(path, [this, what, answer = std::move(answer)](const Request& request, Response& response) {
      const ApiKey* key = KeyOf(request);
      const bool may = !options.api_keys.required() || (key != nullptr && key->admin);
      const std::string why = " only with an admin key (--admin-key, or the word admin in --api-key-file)";
      SendResult(request, response, may ? answer(request) : PermissionDenied(what + why));
    });
  }

  // A request that computes with the model: one of at most as many as may run or wait, and of its key's.
  struct Admission {
    std::shared_ptr<void> counted;
    std::shared_ptr<KeyLimiter::Lease> lease;
  };

  // Nothing if the request has been refused.
  std::optional<Admission> Admit(const Request& request, Response& response) {
    Admission admission{std::shared_ptr<void>(nullptr, [this](void*) { --generating; }), nullptr};
    if (++generating > GenerationLimit(options)) {
      SendLimit(request, response, RetryAfter(),
                {StatusCode::kResourceExhausted, "too many requests are running or waiting (limit: --queue)"});
      return std::nullopt;
    }
    if (request.is_connection_closed()) return std::nullopt;  // nothing is computed for a client that is gone
    if (const auto hit = key_limiter.Begin(KeyOf(request), &admission.lease)) {
      SendLimit(request, response, hit->retry_after_seconds, hit->status);
      return std::nullopt;
    }
    return admission;
  }

  Result<AcceptedRequest> Submit(const Request& request, ParseRequest parse, std::shared_ptr<KeyLimiter::Lease> lease) {
    auto body = ParseBody(request);
    const DiscardedJson discarded(&body);
    if (!body.ok()) return body.status();
    auto parsed = parse(*body, OwnerOf(request), services.api);
    if (!parsed.ok()) return parsed.status();
    if (Status status = LimitWholeAnswer(services.api, &*parsed); !status.ok()) return status;

    AcceptedRequest accepted{{}, std::move(parsed->writer), parsed->stream};
    Status status = SubmitChoice(std::move(parsed->generation), std::move(lease), &accepted.choices);
    for (GenerationRequest& other : parsed->more) {
      if (!status.ok()) break;
      std::shared_ptr<KeyLimiter::Lease> another;
      const auto hit = key_limiter.Begin(KeyOf(request), &another);
      status = hit ? hit->status : SubmitChoice(std::move(other), std::move(another), &accepted.choices);
    }
    if (status.ok()) return accepted;
    for (const RunningChoice& choice : accepted.choices) choice.generation->Cancel();
    return status;
  }

  Status SubmitChoice(GenerationRequest request, std::shared_ptr<KeyLimiter::Lease> lease,
                      std::vector<RunningChoice>* choices) {
    auto generation = services.scheduler.Submit(std::move(request));
    if (!generation.ok()) return generation.status();
    choices->push_back({std::move(*generation), std::move(lease)});
    return {};
  }

  // An endpoint that generates.
  void PostGenerate(const std::string& path, ParseRequest parse) {
    Post(path, [this, parse](const Request& request, Response& response) {
      auto admission = Admit(request, response);
      if (!admission) return;
      std::optional<AcceptedRequest> accepted;
      Prepare(request, response, [&] {
        auto submitted = Submit(request, parse, std::move(admission->lease));
        if (submitted.ok()) {
          accepted = std::move(*submitted);
        } else if (submitted.status().code() == StatusCode::kResourceExhausted) {
          SendLimit(request, response, RetryAfter(), submitted.status());
        } else {
          SendError(request, response, submitted.status());
        }
      });
      if (!accepted) return;
      AnswerWith(std::make_shared<AnsweredGeneration>(std::move(accepted->choices), std::move(accepted->writer),
                                                      std::move(admission->counted)),
                 accepted->stream, request, response,
                 [&](const Status& error) { SendError(request, response, error); });
    });
  }

  Result<EmbeddingRequest> ReadEmbeddings(const Request& request, ParseEmbeddingRequest parse) const {
    auto body = ParseBody(request);
    const DiscardedJson discarded(&body);
    if (!body.ok()) return body.status();
    return parse(*body, services.api, *services.embedder);
  }

  // Embeddings are admitted as generations are, and end like them: when the client goes away or their time is up.
  void PostEmbeddings(const std::string& path, ParseEmbeddingRequest parse) {
    Post(path, [this, parse](const Request& request, Response& response) {
      if (services.embedder == nullptr) {
        return SendError(request, response,
                         Unsupported("start the server with --embeddings to get embeddings, or with --reranking and a "
                                     "model that ranks documents to rank them"));
      }
      const auto admission = Admit(request, response);
      if (!admission) return;
      const TimePoint deadline = Later(Clock::Real().Now(), options.max_embedding_time);
      const auto before_each = [&](size_t tokens) -> Status {
        if (request.is_connection_closed()) return Unavailable("the client went away");
        if (Clock::Real().Now() >= deadline) return Unavailable("the request's time ran out");
        admission->lease->ChargeTokens(static_cast<int>(tokens));
        return {};
      };
      std::optional<EmbeddingRequest> inputs;
      Prepare(request, response, [&] {
        auto read = ReadEmbeddings(request, parse);
        read.ok() ? void(inputs = std::move(*read)) : SendError(request, response, read.status());
      });
      if (!inputs) return;
      SendResult(request, response, AnswerEmbeddings(*inputs, *services.embedder, before_each));
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
      response.set_header("Process-Start-Time-Unix", std::to_string(services.api.start_time));
      response.set_content(MetricsText(services.scheduler.Stats()), kMetricsContentType);
    });

    for (const char* path : {"/v1/chat/completions", "/chat/completions"}) PostGenerate(path, ParseChatCompletion);
    PostGenerate("/v1/completions", ParseTextCompletion);
    for (const char* path : {"/v1/responses", "/responses"}) PostGenerate(path, ParseResponse);
    PostGenerate("/v1/messages", ParseMessages);
    for (const char* path : {"/completion", "/completions"}) PostGenerate(path, ParseLlamaCompletion);

    for (const char* path : {"/infill", "/v1/infill"}) PostGenerate(path, ParseInfill);
    for (JsonRoute& route : JsonRoutes(services.api)) PostJson(route.path, std::move(route.answer));
    PostEmbeddings("/v1/embeddings", ParseEmbeddings);
    for (const char* path : {"/embeddings", "/embedding"}) PostEmbeddings(path, ParseLlamaEmbeddings);
    for (const char* path : {"/v1/rerank", "/v1/reranking", "/rerank", "/reranking"}) PostEmbeddings(path, ParseRerank);
    PostAsAdmin("/slots/:id", "slots are saved, restored and erased", [this](const Request& request) {
      const std::string id = request.path_params.at("id"), action = request.get_param_value("action");
      return slot_actions.Act(id, action, request.body, OwnerOf(request));
    });
    Get("/lora-adapters",
        [this](const Request&, Response& response) { SendJson(response, services.adapters->Describe()); });
    PostAsAdmin("/lora-adapters", "the default scales of adapters are set", [this](const Request& request) {
      const auto body = ParseBody(request);
      return body.ok() ? services.adapters->SetDefaults(*body) : Result<Json>(body.status());
    });
  }

  const ApiKey* KeyOf(const Request& request) const {
    const Entry entry = EntryOf(request);
    return options.api_keys.Find(entry.authorization, entry.x_api_key);
  }

  // Whose the request is; "" without keys.
  std::string OwnerOf(const Request& request) const {
    const ApiKey* key = KeyOf(request);
    return key == nullptr ? "" : key->name;
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
    const auto hit = key_limiter.TakeRequest(KeyOf(request));
    if (hit) SendLimit(request, response, hit->retry_after_seconds, hit->status);
    return hit.has_value();
  }

  // One line per request, with the name of the key and never the key itself.
  void Audit(const AnsweredRequest& request) {
    constexpr size_t kMuch = 1 << 20;
    if (request.bytes_written > kMuch) lane.GiveMemoryBack();
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
