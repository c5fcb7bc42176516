#include "http/server.h"

#include <cpp-httplib/httplib.h>
#include <fmt/format.h>

#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>

#include "api/fields.h"
#include "api/messages.h"
#include "base/log.h"
#include "base/metrics_writer.h"
#include "http/listening_socket.h"
#include "http/page_routes.h"
#include "http/slots.h"

namespace outrider {
namespace {

using httplib::Request;
using httplib::Response;

// How often a thread that waits for the model looks whether its client is still there.
constexpr std::chrono::milliseconds kDisconnectCheck{20};

void SendJson(Response& response, const Json& body, int status = 200) {
  response.status = status;
  response.set_content(DumpJson(body) + "\n", "application/json");
}

// The error in the shape that clients of the endpoint expect.
void SendError(const Request& request, Response& response, const Status& error, int status) {
  SendJson(response, request.path.starts_with("/v1/messages") ? AnthropicError(error) : OpenAiError(error), status);
}

void SendError(const Request& request, Response& response, const Status& error) {
  SendError(request, response, error, HttpStatus(error.code()));
}

void SendResult(const Request& request, Response& response, const Result<Json>& result) {
  result.ok() ? SendJson(response, *result) : SendError(request, response, result.status());
}

bool IsOpenPath(const std::string& path) {
  return path == "/health" || path == "/v1/health";
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

// Counts the answers that are being written, so that the server can wait for them before it stops: httplib would cut a
// stream between two of its chunks.
class RunningAnswers {
 public:
  // Counts one answer until the last copy of the result is destroyed.
  std::shared_ptr<void> Enter() {
    const std::lock_guard lock(mutex_);
    ++count_;
    return {nullptr, [this](void*) { Leave(); }};
  }

  void WaitForNone(Duration limit) {
    std::unique_lock lock(mutex_);
    none_.wait_for(lock, limit, [this] { return count_ == 0; });
  }

 private:
  void Leave() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;
};

}  // namespace

struct HttpServer::Impl {
  HttpOptions options;
  Services services;
  RunningAnswers answers;
  httplib::Server server;
  std::multimap<std::string, std::string> methods;  // from path to the methods it accepts; for status 405

  PageRoutes page;

  Impl(HttpOptions http_options, Services http_services)
      : options(std::move(http_options)), services(http_services), page(options.page, services) {}

  void Get(const std::string& path, httplib::Server::Handler handler) {
    methods.emplace(path, "GET");
    server.Get(path, std::move(handler));
  }

  void Post(const std::string& path, httplib::Server::Handler handler) {
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
      std::shared_ptr<void> answer = answers.Enter();
      auto body = ParseJson(request.body);
      if (!body.ok()) return SendError(request, response, body.status());
      auto parsed = parse(
          *body,
          options.api_keys.Owner(request.get_header_value("Authorization"), request.get_header_value("x-api-key")),
          services.api);
      if (!parsed.ok()) return SendError(request, response, parsed.status());
      auto generation = services.scheduler.Submit(std::move(parsed->generation));
      if (!generation.ok()) {
        if (generation.status().code() == StatusCode::kResourceExhausted)
          response.set_header("Retry-After", RetryAfter());
        return SendError(request, response, generation.status());
      }
      Run(*generation, std::move(*parsed), std::move(answer), request, response);
    });
  }

  std::string RetryAfter() const {
    const SchedulerStats stats = services.scheduler.Stats();
    uint64_t finished = 0;
    for (uint64_t n : stats.finished) finished += n;
    const double mean_seconds =
        finished > 0 ? (stats.prompt_seconds + stats.generate_seconds) / static_cast<double>(finished) : 1;
    return std::to_string(std::clamp(static_cast<int>(std::ceil(mean_seconds)), 1, 60));
  }

  // The next chunk; nothing if the client went away, which cancels the generation.
  static std::optional<Chunk> NextChunk(Generation& generation, const std::function<bool()>& client_is_there) {
    while (client_is_there()) {
      if (auto chunk = generation.Wait(kDisconnectCheck)) return chunk;
    }
    generation.Cancel();
    return std::nullopt;
  }

  static void Run(std::shared_ptr<Generation> generation, ParsedRequest parsed, std::shared_ptr<void> answer,
                  const Request& request, Response& response) {
    const auto client_is_there = [&request] { return !request.is_connection_closed(); };
    auto chunk = NextChunk(*generation, client_is_there);
    if (!chunk) return;
    // A failure before the first byte is an HTTP error, also if a stream was asked for.
    if (chunk->completion && !chunk->completion->error.ok())
      return SendError(request, response, chunk->completion->error);
    if (parsed.stream) {
      return Stream(std::move(generation), std::move(parsed), std::move(answer), std::move(*chunk), response);
    }

    parsed.writer->Append(*chunk);
    while (!chunk->completion) {
      chunk = NextChunk(*generation, client_is_there);
      if (!chunk) return;
      parsed.writer->Append(*chunk);
    }
    if (!chunk->completion->error.ok()) return SendError(request, response, chunk->completion->error);
    SendJson(response, parsed.writer->Whole());
  }

  static void Stream(std::shared_ptr<Generation> generation, ParsedRequest parsed, std::shared_ptr<void> answer,
                     Chunk first, Response& response) {
    struct State {
      std::shared_ptr<void> answer;
      std::shared_ptr<Generation> generation;
      std::unique_ptr<ResponseWriter> writer;
      std::optional<Chunk> first;
      ~State() { generation->Cancel(); }  // however the connection ended; no effect on a finished generation
    };
    auto state = std::make_shared<State>();
    state->answer = std::move(answer);
    state->generation = std::move(generation);
    state->writer = std::move(parsed.writer);
    state->first = std::move(first);
    response.set_header("Cache-Control", "no-cache");
    response.set_header("X-Accel-Buffering", "no");  // proxies must pass tokens on as they come
    response.set_chunked_content_provider("text/event-stream", [state](size_t, httplib::DataSink& sink) {
      auto chunk =
          state->first ? std::exchange(state->first, std::nullopt) : NextChunk(*state->generation, sink.is_writable);
      if (!chunk) return false;
      const bool failed = chunk->completion && !chunk->completion->error.ok();
      const std::string events =
          failed ? state->writer->ErrorEvent(chunk->completion->error) : state->writer->Append(*chunk);
      if (!events.empty() && !sink.write(events.data(), events.size())) return false;
      if (chunk->completion) sink.done();
      return true;
    });
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
      const std::string id = request.path_params.at("id"), action = request.get_param_value("action");
      SendResult(request, response,
                 SlotAction(id, action, request.body, options.slot_save_path, services.info.model_fingerprint,
                            services.scheduler));
    });
  }

  void AddGuards() {
    server.set_pre_routing_handler([this](const Request& request, Response& response) {
      if (!options.cors_origin.empty()) {
        response.set_header("Access-Control-Allow-Origin", options.cors_origin);
        response.set_header("Access-Control-Allow-Headers",
                            "Authorization, Content-Type, x-api-key, anthropic-version");
        response.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
        if (request.method == "OPTIONS") {
          response.status = 204;
          return httplib::Server::HandlerResponse::Handled;
        }
      }
      const bool may =
          !options.api_keys.required() || IsOpenPath(request.path) ||
          page.IsOpen(request.path, request.get_header_value("Accept")) ||
          options.api_keys.Accepts(request.get_header_value("Authorization"), request.get_header_value("x-api-key"));
      if (may) return httplib::Server::HandlerResponse::Unhandled;
      response.set_header("WWW-Authenticate", "Bearer");
      SendError(
          request, response,
          Status(StatusCode::kUnauthenticated, "a valid API key is needed: send it as 'Authorization: Bearer KEY'"));
      return httplib::Server::HandlerResponse::Handled;
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
      const std::string message = status == 413
                                      ? fmt::format("the body is larger than {} bytes", options.max_body_bytes)
                                      : fmt::format("the request could not be read (HTTP {})", status);
      SendError(request, response, InvalidArgument(message), status);
    });
    server.set_exception_handler([](const Request& request, Response& response, std::exception_ptr exception) {
      std::string what = "unknown exception";
      try {
        std::rethrow_exception(exception);
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
    : impl_(std::make_unique<Impl>(std::move(options), services)) {
  httplib::Server& server = impl_->server;
  const HttpOptions& o = impl_->options;
  server.new_task_queue = [threads = static_cast<size_t>(o.max_connections)] {
    // All threads from the start: httplib's pool grows by at most one thread per new connection, so a burst of slow
    // peers would hold up all connections that come after them.
    return new httplib::ThreadPool(/*n=*/threads, /*max_n=*/threads, /*mqr=*/threads);
  };
  server.set_payload_max_length(o.max_body_bytes);
  server.set_read_timeout(o.timeout_seconds);
  server.set_write_timeout(o.timeout_seconds);
  server.set_keep_alive_timeout(o.idle_seconds);
  server.set_keep_alive_max_count(1000);
  server.set_tcp_nodelay(true);
  server.set_socket_options(SetListenOptions);
  impl_->AddGuards();
  impl_->AddRoutes();
}

HttpServer::~HttpServer() = default;

Status HttpServer::Listen() {
  HttpOptions& options = impl_->options;
  if (options.port == 0) {
    options.port = impl_->server.bind_to_any_port(options.host);
    if (options.port > 0) return {};
    options.port = 0;
  } else if (impl_->server.bind_to_port(options.host, options.port)) {
    return {};
  }
  return InvalidArgument(fmt::format("cannot listen on {}:{}: the port is in use or the address is not this machine's",
                                     options.host, options.port));
}

int HttpServer::port() const {
  return impl_->options.port;
}
void HttpServer::Serve() {
  impl_->server.listen_after_bind();
}
void HttpServer::Stop(Duration max_wait) {
  impl_->page.Stop();
  impl_->answers.WaitForNone(max_wait);
  impl_->server.stop();
}

}  // namespace outrider
