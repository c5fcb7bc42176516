#include "bench/endpoint.h"

#include <cpp-httplib/httplib.h>
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "bench/answer_reader.h"
#include "bench/json_fields.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

constexpr auto kConnectTimeout = milliseconds(5000);
constexpr auto kPollInterval = milliseconds(100);
constexpr auto kReadTimeout = std::chrono::minutes(10);  // without a byte: a long prompt on a slow machine

class HttpEndpoint : public Endpoint {
 public:
  HttpEndpoint(std::string origin, std::string prefix, std::string api_key, const std::atomic<bool>* stop)
      : origin_(std::move(origin)), prefix_(std::move(prefix)), stop_(stop) {
    if (!api_key.empty()) headers_.emplace("Authorization", "Bearer " + api_key);
  }

  Result<BenchAnswer> Ask(const BenchRequest& request) override {
    Json body = Body(request);
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    if (knows_llama_fields_) {
      body["cache_prompt"] = false;  // every prompt is computed, not found in a cache
      body["speculative"] = {{"provenance", true}};
    }
    httplib::Request call = Call(body);
    AnswerReader reader(Clock::Real());
    call.content_receiver = [&](const char* data, size_t size, size_t, size_t) {
      return !*stop_ && reader.Feed({data, size});
    };
    httplib::Client client = Client();
    const httplib::Result result = Send(client, call);
    BenchAnswer& answer = reader.answer();
    answer.seconds = reader.SecondsSinceSent();
    if (*stop_) return Unavailable("stopped");
    if (result && result->status != 200) {
      return Unavailable(fmt::format("{} answered {}: {}", origin_, result->status, ErrorMessage(reader.raw())));
    }
    if (!reader.error().empty()) return Unavailable(fmt::format("{} failed: {}", origin_, reader.error()));
    if (!result && answer.arrivals.empty()) return Unavailable(CannotReach(result.error()));
    if (!reader.complete()) {
      return Unavailable(fmt::format("{} dropped the connection in the middle of an answer, after {} pieces of text",
                                     origin_, answer.arrivals.size()));
    }
    if (answer.tokens == 0) answer.tokens = CountOf(Field(answer.timings, "predicted_n"));
    return std::move(answer);
  }

  Result<std::vector<RankedToken>> AskProbabilities(const BenchRequest& request) override {
    Json body = Body(request);
    body["logprobs"] = true;
    body["top_logprobs"] = 2;
    httplib::Client client = Client();
    const httplib::Result result = Send(client, Call(body));
    if (!result) return Unavailable(CannotReach(result.error()));
    const auto json = ParseJson(result->body);
    std::vector<RankedToken> tokens;
    if (result->status != 200 || !json.ok()) return tokens;
    const Json& content = Field(Field(FirstChoice(*json), "logprobs"), "content");
    if (!content.is_array()) return tokens;
    for (const Json& each : content) {
      RankedToken token;
      token.text = TextOf(Field(each, "token"));
      const Json& top = Field(each, "top_logprobs");
      if (top.is_array() && top.size() >= 2) {
        token.gap = NumberOf(Field(top[0], "logprob")) - NumberOf(Field(top[1], "logprob"));
        token.runner_up = TextOf(Field(top[TextOf(Field(top[0], "token")) == token.text ? 1 : 0], "token"));
      }
      tokens.push_back(std::move(token));
    }
    return tokens;
  }

  Status WaitUntilReady(Duration timeout) override {
    const TimePoint deadline = Clock::Real().Now() + timeout;
    for (;;) {
      httplib::Client client = Client();
      client.set_read_timeout(kConnectTimeout);
      const httplib::Result result = client.Get(prefix_ + "/models", headers_);
      if (*stop_) return Unavailable("stopped");
      if (result && result->status == 200) {
        const auto models = ParseJson(result->body);
        const Json list = models.ok() ? Field(*models, "data") : Json();
        if (list.is_array() && !list.empty()) model_ = TextOf(Field(list[0], "id"));
        const httplib::Result properties = client.Get("/props", headers_);
        knows_llama_fields_ = properties && properties->status == 200;
        return {};
      }
      if (Clock::Real().Now() >= deadline) {
        if (!result) return Unavailable(CannotReach(result.error()));
        return Unavailable(
            fmt::format("{}{}/models answered {}: {}; is this the address of an OpenAI-compatible server?", origin_,
                        prefix_, result->status, ErrorMessage(result->body)));
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  }

 private:
  httplib::Client Client() const {
    httplib::Client client(origin_);
    client.set_connection_timeout(kConnectTimeout);
    client.set_read_timeout(kReadTimeout);
    client.set_tcp_nodelay(true);
    return client;
  }

  httplib::Request Call(const Json& body) const {
    httplib::Request call;
    call.method = "POST";
    call.path = prefix_ + "/chat/completions";
    call.headers = headers_;
    call.headers.emplace("Content-Type", "application/json");
    call.body = DumpJson(body);
    return call;
  }

  // Returns early, with an error, when the bench is stopped.
  httplib::Result Send(httplib::Client& client, const httplib::Request& call) const {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::thread watcher([&] {
      std::unique_lock lock(mutex);
      while (!changed.wait_for(lock, kPollInterval, [&] { return done; })) {
        if (*stop_) client.stop();
      }
    });
    httplib::Result result = client.send(call);
    {
      const std::lock_guard lock(mutex);
      done = true;
    }
    changed.notify_one();
    watcher.join();
    return result;
  }

  Json Body(const BenchRequest& request) const {
    Json messages = Json::array();
    for (const BenchMessage& message : request.messages) {
      messages.push_back({{"role", message.role}, {"content", message.content}});
    }
    return {{"model", model_},
            {"messages", std::move(messages)},
            {"temperature", request.temperature},
            {"seed", request.seed},
            {"max_tokens", request.max_tokens}};
  }

  std::string CannotReach(httplib::Error error) const {
    return fmt::format("cannot reach {}: {}", origin_, httplib::to_string(error));
  }

  const std::string origin_, prefix_;
  const std::atomic<bool>* const stop_;
  httplib::Headers headers_;
  std::string model_ = "default";
  std::atomic<bool> knows_llama_fields_ = false;
};

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::Create(const std::string& url, const std::string& api_key,
                                                   const std::atomic<bool>* stop) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) {
    return InvalidArgument(fmt::format("'{}' is not an address like http://host:port/v1{}", url,
                                       url.starts_with("https://") ? " (TLS is not supported: use a tunnel)" : ""));
  }
  const size_t slash = url.find('/', kScheme.size());
  const std::string origin = url.substr(0, slash);
  std::string prefix = slash == url.npos ? "" : url.substr(slash);
  while (prefix.ends_with('/')) prefix.pop_back();
  if (prefix.empty()) prefix = "/v1";
  if (origin.size() == kScheme.size()) return InvalidArgument(fmt::format("'{}' has no host", url));
  return std::unique_ptr<Endpoint>(std::make_unique<HttpEndpoint>(origin, prefix, api_key, stop));
}

}  // namespace outrider
