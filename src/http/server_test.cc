// The HTTP layer over real sockets, on an engine without a model. What bodies mean is tested in src/api; here: which
// path leads where, who is let in, which limits hold, and that answers and disconnections reach the right place.
#include "http/server.h"

#include <cpp-httplib/httplib.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include "base/metrics_writer.h"
#include "http/http_test_util.h"
#include "http/page.h"
#include "http/socket_test_util.h"

namespace outrider {
namespace {

std::string PostRequest(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

struct RunningServer {
  explicit RunningServer(HttpOptions options = {}, int n_sequences = 2, SchedulerOptions scheduling = {},
                         Embedder* embedder = nullptr, const ApiContext* api = nullptr)
      : house(n_sequences, scheduling),
        server(FreePort(std::move(options)),
               {api == nullptr ? house.context.api : *api, info, house.scheduler, embedder, &adapters}) {
    info.model_path = "/models/fake.gguf";
    EXPECT_TRUE(server.Listen().ok());
    thread = std::thread([this] { server.Serve(); });
    Get("/health");  // Stop must not come before Serve
  }
  ~RunningServer() {
    house.gate.Open();
    house.scheduler.Drain(Duration::zero());
    Stop();
  }

  static HttpOptions FreePort(HttpOptions options) {
    options.port = 0;
    return options;
  }

  void Stop() {
    if (!thread.joinable()) return;
    server.Stop(kLimit);
    thread.join();
  }

  httplib::Client Client() const {
    httplib::Client client("127.0.0.1", server.port());
    client.set_read_timeout(kLimit);
    return client;
  }
  httplib::Result Get(const std::string& path, const httplib::Headers& headers = {}) const {
    return Client().Get(path, headers);
  }
  httplib::Result Post(const std::string& path, const std::string& body, const httplib::Headers& headers = {}) const {
    return Client().Post(path, headers, body, "application/json");
  }

  uint64_t Finished(FinishReason reason) const { return house.scheduler.Stats().finished[static_cast<size_t>(reason)]; }

  ServerInfo info;
  AdapterList adapters{{{"a.gguf", "", "", 1}, {"b.gguf", "", "", 2}}, {1, 0}};
  TestScheduler house;
  HttpServer server;
  std::thread thread;
};

std::string Completion(int tokens, bool stream = false) {
  return Json{{"prompt", "Say it: "}, {"n_predict", tokens}, {"temperature", 0}, {"stream", stream}}.dump();
}

void ExpectJson(const RunningServer& server, const std::string& path, const std::string& body) {
  const auto answer = server.Post(path, body);
  ASSERT_TRUE(answer) << path;
  EXPECT_EQ(answer->status, 200) << path << ": " << answer->body;
  EXPECT_EQ(answer->get_header_value("Content-Type"), "application/json") << path;
  EXPECT_TRUE(Json::accept(answer->body)) << path << ": " << answer->body;
}

// --- Routes

TEST(HttpServerTest, EveryPathLeadsSomewhere) {
  const RunningServer server;
  for (const char* path : {"/", "/health", "/v1/health", "/v1/models", "/models", "/props", "/slots", "/metrics"}) {
    const auto answer = server.Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 200) << path << ": " << answer->body;
  }
  const std::string messages = R"("messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3, "temperature": 0})";
  const std::pair<const char*, std::string> posts[] = {
      {"/v1/chat/completions", "{" + messages},
      {"/chat/completions", "{" + messages},
      {"/v1/messages", "{" + messages},
      {"/v1/messages/count_tokens", R"({"messages": [{"role": "user", "content": "Hi"}]})"},
      {"/v1/completions", R"({"prompt": "Hi", "max_tokens": 3})"},
      {"/v1/responses", R"({"input": "Hi", "max_output_tokens": 3})"},
      {"/responses", R"({"input": "Hi", "max_output_tokens": 3})"},
      {"/completion", Completion(3)},
      {"/completions", Completion(3)},
      {"/tokenize", R"({"content": "Hi"})"},
      {"/detokenize", R"({"tokens": [72, 105]})"},
      {"/v1/chat/completions/input_tokens", "{" + messages},
      {"/chat/completions/input_tokens", "{" + messages},
      {"/v1/responses/input_tokens", R"({"input": "Hi"})"},
      {"/responses/input_tokens", R"({"input": "Hi"})"},
      {"/apply-template", R"({"messages": [{"role": "user", "content": "Hi"}]})"},
      {"/slots/1?action=erase", ""},
  };
  for (const auto& [path, body] : posts) ExpectJson(server, path, body);

  int live_status = 0;  // a stream without an end: only its beginning is looked at
  server.Client().Get(
      "/live", {},
      [&](const httplib::Response& response) {
        live_status = response.status;
        return false;
      },
      [](const char*, size_t) { return false; });
  EXPECT_EQ(live_status, 200);
}

TEST(HttpServerTest, EveryPathOfSpecialModelsLeadsSomewhere) {
  struct GapTokenizer : FakeTokenizer {
    InfillTokens infill() const override { return {.prefix = 1, .suffix = 2, .middle = 3}; }
  } tokenizer;
  struct Vectors : Embedder {
    explicit Vectors(EmbeddingKind its_kind) : its_kind_(its_kind) {}
    EmbeddingKind kind() const override { return its_kind_; }
    int max_tokens() const override { return 100; }
    Result<std::vector<float>> Embed(std::span<const Token>) override { return std::vector<float>{1}; }
    const EmbeddingKind its_kind_;
  } text(EmbeddingKind::kText), rank(EmbeddingKind::kRank);
  const std::unique_ptr<ChatTemplate> chat = MakeTemplate("");
  const ApiContext api{tokenizer, *chat, "gaps", 0, 1000, 2, {}, -1};

  const RunningServer embedding({}, 2, {}, &text, &api), ranking({}, 2, {}, &rank);
  for (const char* path : {"/infill", "/v1/infill"}) {
    ExpectJson(embedding, path, R"({"input_prefix": "a", "input_suffix": "b", "n_predict": 3})");
  }
  ExpectJson(embedding, "/v1/embeddings", R"({"input": "Hi"})");
  for (const char* path : {"/embeddings", "/embedding"}) ExpectJson(embedding, path, R"({"content": "Hi"})");
  for (const char* path : {"/rerank", "/reranking", "/v1/rerank", "/v1/reranking"}) {
    ExpectJson(ranking, path, R"({"query": "a", "documents": ["b"]})");
  }
}

TEST(HttpServerTest, EachPathGivesItsOwnAnswer) {
  const RunningServer server;
  EXPECT_EQ(Json::parse(server.Get("/health")->body), (Json{{"status", "ok"}}));
  EXPECT_EQ(Json::parse(server.Get("/v1/models")->body)["data"][0]["id"], "test-model");
  EXPECT_EQ(Json::parse(server.Get("/props")->body)["model_path"], "/models/fake.gguf");
  EXPECT_EQ(Json::parse(server.Get("/slots")->body).size(), 2u);
  EXPECT_EQ(server.Get("/metrics")->get_header_value("Content-Type"), kMetricsContentType);
  EXPECT_NE(server.Get("/")->body.find("/v1/chat/completions"), std::string::npos);
  EXPECT_EQ(Json::parse(server.Post("/tokenize", R"({"content": "Hi"})")->body), (Json{{"tokens", {72, 105}}}));
  EXPECT_EQ(Json::parse(server.Post("/detokenize", R"({"tokens": [72, 105]})")->body), (Json{{"content", "Hi"}}));
  EXPECT_EQ(Json::parse(server.Post("/completion", Completion(5))->body)["content"], "abcde");
}

// --- The page

TEST(HttpServerTest, BrowsersGetThePageAndProgramsTheListOfPaths) {
  const RunningServer server;
  const httplib::Headers browser = {{"Accept", "text/html,*/*"}};
  EXPECT_EQ(server.Get("/")->body.rfind("Outrider is running.", 0), 0u);
  const auto page = server.Get("/", browser);
  ASSERT_EQ(page->status, 200);
  if (EmbeddedPage().empty()) {
    EXPECT_NE(page->body.find("page was not built"), std::string::npos);
    return;
  }
  EXPECT_EQ(page->get_header_value("Content-Security-Policy"), kPagePolicy);
  EXPECT_NE(page->body.find("<!doctype html>"), std::string::npos);
  httplib::Headers again = browser;
  again.emplace("If-None-Match", page->get_header_value("ETag"));
  EXPECT_EQ(server.Get("/", again)->status, 304);
  HttpOptions options;
  options.api_keys = ApiKeys({PlainKey("key")});
  const RunningServer locked(options);
  EXPECT_EQ(locked.Get("/", browser)->status, 200) << "a browser that opens a page cannot send a key";
  EXPECT_EQ(locked.Get("/page/app.js")->status, 200);
  EXPECT_EQ(locked.Get("/")->status, 401);
  EXPECT_EQ(locked.Get("/live")->status, 401);
}

TEST(HttpServerTest, ThePageCanBeSwitchedOff) {
  HttpOptions options;
  options.page = false;
  const RunningServer server(options);
  const auto answer = server.Get("/", {{"Accept", "text/html"}});
  EXPECT_EQ(answer->body.rfind("Outrider is running.\n", 0), 0u);
  EXPECT_EQ(server.Get("/page/app.js")->status, 404);
}

TEST(HttpServerTest, WatchersGetSnapshotsUntilTheServerStops) {
  RunningServer server;
  Socket watcher(server.server.port());
  ASSERT_TRUE(watcher.Send("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  ASSERT_TRUE(watcher.ReadUntil("llamacpp:n_decode_total"));
  ASSERT_EQ(server.Post("/completion", Completion(5))->status, 200);
  ASSERT_TRUE(watcher.ReadUntil("llamacpp:tokens_predicted_total 5"));
  server.Stop();
  EXPECT_TRUE(watcher.ReadToEnd());
  EXPECT_NE(watcher.received().find("\r\n0\r\n"), std::string::npos) << "the stream ended in order";
}

TEST(HttpServerTest, PathsThatDoNotExistAndWrongMethods) {
  const RunningServer server;
  for (const char* path : {"/nowhere", "/v1/chat/completions/", "/v1"}) {
    const auto answer = server.Get(path);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 404) << path;
    const std::string message = Json::parse(answer->body)["error"]["message"];
    EXPECT_NE(message.find(path), std::string::npos) << message;
  }
  const auto get = server.Get("/v1/chat/completions");
  EXPECT_EQ(get->status, 405);
  EXPECT_EQ(get->get_header_value("Allow"), "POST");
  const auto post = server.Post("/health", "{}");
  EXPECT_EQ(post->status, 405);
  EXPECT_EQ(post->get_header_value("Allow"), "GET");
}

TEST(HttpServerTest, ErrorsHaveTheShapeOfTheProtocol) {
  const RunningServer server;
  for (const char* path : {"/v1/chat/completions", "/completion", "/tokenize", "/v1/responses"}) {
    const auto answer = server.Post(path, "{nonsense");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 400) << path;
    EXPECT_EQ(Json::parse(answer->body)["error"]["type"], "invalid_request_error") << path;
    EXPECT_FALSE(Json::parse(answer->body).contains("type")) << path;
  }
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens"}) {
    const auto answer = server.Post(path, "{nonsense");
    EXPECT_EQ(answer->status, 400) << path;
    EXPECT_EQ(Json::parse(answer->body)["type"], "error") << path;
  }
  const auto field = server.Post("/completion", R"({"prompt": "Hi", "n_predict": "lots"})");
  EXPECT_EQ(Json::parse(field->body)["error"]["param"], "n_predict");
}

TEST(HttpServerTest, InfillAndRerankNeedAModelForThem) {
  const RunningServer server;
  const auto infill = server.Post("/infill", R"({"input_prefix": "a", "input_suffix": "b"})");
  EXPECT_EQ(infill->status, 501) << infill->body;
  for (const char* path : {"/rerank", "/reranking", "/v1/rerank", "/v1/reranking"}) {
    const auto answer = server.Post(path, R"({"query": "a", "documents": ["b"]})");
    EXPECT_EQ(answer->status, 501) << path;
    EXPECT_NE(answer->body.find("--reranking"), std::string::npos) << answer->body;
  }
}

TEST(HttpServerTest, APromptThatDoesNotFitIsToldInBothSizes) {
  const RunningServer server;
  const auto answer = server.Post("/completion", Json{{"prompt", std::string(2000, 'x')}}.dump());
  EXPECT_EQ(answer->status, 400);
  const Json error = Json::parse(answer->body)["error"];
  EXPECT_EQ(error["type"], "exceed_context_size_error");
  EXPECT_EQ(error["n_prompt_tokens"], 2001);
  EXPECT_GT(error["n_ctx"], 0);
  EXPECT_NE(error["message"].get<std::string>().find("exceeds the available context size"), std::string::npos);
}

TEST(HttpServerTest, ErrorCodesAreTheStatusOfTheAnswer) {
  const RunningServer server;
  EXPECT_EQ(Json::parse(server.Get("/nowhere")->body)["error"]["code"], 404);
  EXPECT_EQ(Json::parse(server.Post("/health", "{}")->body)["error"]["code"], 405);
  EXPECT_EQ(Json::parse(server.Post("/completion", "{")->body)["error"]["code"], 400);
}

// --- Several choices

TEST(HttpServerTest, ChoicesAreAnsweredTogether) {
  const RunningServer server;
  const std::string body = R"({"prompt": ["a", "M"], "max_tokens": 4, "temperature": 0, "n": 2)";
  const Json answer = Json::parse(server.Post("/v1/completions", body + "}")->body);
  ASSERT_EQ(answer["choices"].size(), 4u) << "more than there are slots";
  EXPECT_EQ(answer["choices"][0]["text"], "bcde");
  EXPECT_EQ(answer["choices"][1]["text"], "bcde");
  EXPECT_EQ(answer["choices"][3]["text"], "abcd");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 16);
  const auto streamed = server.Post("/v1/completions", body + R"(, "stream": true})");
  std::string texts[4];
  for (const Json& event : DataEvents(streamed->body)) {
    if (event.is_object()) texts[event["choices"][0]["index"].get<size_t>()] += event["choices"][0]["text"];
  }
  EXPECT_EQ(texts[0] + texts[1] + texts[2] + texts[3], "bcdebcdeabcdabcd");
  EXPECT_TRUE(streamed->body.ends_with("data: [DONE]\n\n"));
}

TEST(HttpServerTest, ChoicesThatTheQueueCannotHoldAreRefusedTogether) {
  SchedulerOptions scheduling;
  scheduling.max_queue = 1;
  RunningServer server({}, 2, scheduling);
  server.house.gate.Close();
  const auto refused = server.Post("/v1/completions", R"({"prompt": "a", "max_tokens": 4, "n": 6})");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 429);
  server.house.gate.Open();
  EXPECT_TRUE(Eventually([&] {
    const auto answer = server.Post("/v1/completions", R"({"prompt": "a", "max_tokens": 4})");
    return answer->status == 200 && Json::parse(answer->body)["choices"][0]["text"] == "bcde";
  })) << "those that were submitted are gone";
}

TEST(HttpServerTest, EachChoiceCountsAgainstTheLimitsOfAKey) {
  HttpOptions options;
  ApiKey key = PlainKey("key");
  key.limits.slots = 2;
  options.api_keys = ApiKeys({key});
  const RunningServer server(options);
  const httplib::Headers headers = {{"Authorization", "Bearer key"}};
  EXPECT_EQ(server.Post("/v1/completions", R"({"prompt": "a", "max_tokens": 2, "n": 2})", headers)->status, 200);
  EXPECT_EQ(server.Post("/v1/completions", R"({"prompt": "a", "max_tokens": 2, "n": 3})", headers)->status, 429);
}

TEST(HttpServerTest, EmbeddingsNeedAFlag) {
  const RunningServer server;
  const auto answer = server.Post("/v1/embeddings", R"({"input": "Hi"})");
  EXPECT_EQ(answer->status, 501);
  EXPECT_NE(answer->body.find("--embeddings"), std::string::npos) << answer->body;
}

TEST(HttpServerTest, AnExceptionCostsOneRequestAndTellsNothing) {
  struct ThrowingEmbedder : Embedder {
    int max_tokens() const override { return 100; }
    Result<std::vector<float>> Embed(std::span<const Token>) override { throw std::runtime_error("a private detail"); }
  } embedder;
  const RunningServer server({}, 2, {}, &embedder);
  const auto answer = server.Post("/v1/embeddings", R"({"input": "Hi"})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 500);
  EXPECT_EQ(Json::parse(answer->body)["error"]["type"], "server_error");
  EXPECT_EQ(answer->body.find("private"), std::string::npos) << answer->body;
  EXPECT_EQ(server.Get("/health")->status, 200);
}

TEST(HttpServerTest, MemoryThatRunsOutCostsOneRequest) {
  struct HungryEmbedder : Embedder {
    int max_tokens() const override { return 100; }
    Result<std::vector<float>> Embed(std::span<const Token>) override { throw std::bad_alloc(); }
  } embedder;
  const RunningServer server({}, 2, {}, &embedder);
  const auto answer = server.Post("/v1/embeddings", R"({"input": "Hi"})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_NE(answer->body.find("memory"), std::string::npos) << answer->body;
  EXPECT_EQ(server.Get("/health")->status, 200);
}

TEST(HttpServerTest, SlotFilesNeedAFolder) {
  const RunningServer without;
  EXPECT_EQ(without.Post("/slots/0?action=save", R"({"filename": "x"})")->status, 501);
  EXPECT_EQ(without.Post("/slots/0?action=dance", "")->status, 400);
  EXPECT_EQ(without.Post("/slots/many?action=erase", "")->status, 400);

  HttpOptions options;
  options.slot_files.folder = testing::TempDir() + "http_test_slots_" + std::to_string(getpid());
  std::filesystem::create_directory(options.slot_files.folder);
  const RunningServer with(options);
  ASSERT_EQ(with.Post("/completion", Completion(3))->status, 200);
  const std::string file = R"({"filename": "one"})";
  // The slot is idle again a moment after the answer has been sent.
  ASSERT_TRUE(Eventually([&] { return with.Post("/slots/0?action=save", file)->status == 200; }));
  EXPECT_EQ(with.Post("/slots/1?action=restore", file)->status, 200);
  std::filesystem::remove_all(options.slot_files.folder);
}

// --- Keys and origins

TEST(HttpServerTest, WithoutAKeyOnlyHealthIsOpen) {
  HttpOptions options;
  options.api_keys = ApiKeys({PlainKey("secret")});
  const RunningServer server(options);
  EXPECT_EQ(server.Get("/health")->status, 200);
  EXPECT_EQ(server.Get("/v1/health")->status, 200);
  for (const char* path : {"/", "/v1/models", "/props", "/slots", "/metrics", "/nowhere", "/health/x"}) {
    const auto answer = server.Get(path);
    EXPECT_EQ(answer->status, 401) << path;
    EXPECT_EQ(answer->get_header_value("WWW-Authenticate"), "Bearer") << path;
    EXPECT_EQ(Json::parse(answer->body)["error"]["type"], "authentication_error") << path;
    EXPECT_EQ(answer->body.find("secret"), std::string::npos);
  }
  const httplib::Headers wrong_ones[] = {{},
                                         {{"Authorization", "Bearer wrong!"}},
                                         {{"Authorization", "Bearer secreT"}},
                                         {{"Authorization", "secret"}},
                                         {{"x-api-key", "secrets"}}};
  for (const httplib::Headers& headers : wrong_ones) {
    EXPECT_EQ(server.Post("/completion", Completion(1), headers)->status, 401);
    EXPECT_EQ(Json::parse(server.Post("/v1/messages", "{}", headers)->body)["type"], "error") << "Anthropic's shape";
  }
  EXPECT_EQ(server.Post("/completion", Completion(1), {{"Authorization", "Bearer secret"}})->status, 200);
  EXPECT_EQ(server.Post("/completion", Completion(1), {{"x-api-key", "secret"}})->status, 200);
  EXPECT_EQ(server.Get("/nowhere", {{"x-api-key", "secret"}})->status, 404);
  EXPECT_EQ(server.house.scheduler.Stats().refused, 0u);
}

TEST(HttpServerTest, PagesOfOthersAreRefused) {
  const RunningServer server;
  const std::string own = "http://127.0.0.1:" + std::to_string(server.server.port());
  EXPECT_EQ(server.Post("/completion", Completion(1), {{"Origin", own}})->status, 200) << "its own page";
  for (const char* path : {"/completion", "/slots/0?action=erase", "/v1/messages"}) {
    for (const httplib::Headers& headers :
         {httplib::Headers{{"Origin", "https://evil.example"}}, httplib::Headers{{"Host", "evil.example"}},
          httplib::Headers{{"Sec-Fetch-Site", "cross-site"}}}) {
      const auto answer = server.Post(path, Completion(1), headers);
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->status, 403) << path;
      EXPECT_NE(answer->body.find("permission_error"), std::string::npos) << answer->body;
      EXPECT_FALSE(answer->has_header("Access-Control-Allow-Origin"));
    }
  }
  EXPECT_EQ(server.Get("/health", {{"Host", "evil.example"}})->status, 403);
  const auto text = server.Client().Post("/completion", {{"Origin", own}}, Completion(1), "text/plain");
  EXPECT_EQ(text->status, 415);
  EXPECT_NE(text->body.find("application/json"), std::string::npos) << text->body;
  EXPECT_EQ(server.Client().Post("/completion", Completion(1), "text/plain")->status, 200) << "curl -d";
  EXPECT_EQ(server.house.scheduler.Stats().refused, 0u);
}

TEST(HttpServerTest, OtherOriginsMayCallWhereThatIsAllowed) {
  const httplib::Headers page = {{"Origin", "https://example.org"}};
  const httplib::Headers asking = {{"Origin", "https://example.org"},
                                   {"Access-Control-Request-Method", "POST"},
                                   {"Access-Control-Request-Headers", "authorization,x-stainless-lang"}};
  const RunningServer closed;
  EXPECT_EQ(closed.Client().Options("/v1/chat/completions", asking)->status, 403);
  EXPECT_FALSE(closed.Get("/health")->has_header("Access-Control-Allow-Origin"));

  HttpOptions options;
  options.cors_origins = {"https://other.example", "https://example.org"};
  options.allowed_hosts = {"llm.example"};
  options.api_keys = ApiKeys({PlainKey("secret")});
  const RunningServer open(options);
  const auto answer = open.Client().Options("/v1/chat/completions", asking);
  EXPECT_EQ(answer->status, 200) << "a preflight carries no key";
  EXPECT_EQ(answer->get_header_value("Access-Control-Allow-Origin"), "https://example.org");
  EXPECT_EQ(answer->get_header_value("Vary"), "Origin");
  EXPECT_EQ(answer->get_header_value("Access-Control-Allow-Headers"), "authorization,x-stainless-lang");
  EXPECT_NE(answer->get_header_value("Access-Control-Allow-Methods").find("POST"), std::string::npos);
  EXPECT_EQ(open.Get("/props", page)->status, 401) << "the request itself does";
  EXPECT_EQ(open.Get("/props", page)->get_header_value("Access-Control-Allow-Origin"), "https://example.org");
  EXPECT_EQ(open.Get("/health", {{"Host", "llm.example:8080"}})->status, 200);
  EXPECT_EQ(open.Client().Options("/props", {{"Origin", "https://evil.example"}})->status, 403);

  options = {};
  options.cors_origins = {"*"};
  const RunningServer wide_open(options);
  EXPECT_EQ(wide_open.Get("/props", page)->get_header_value("Access-Control-Allow-Origin"), "*");
}

TEST(HttpServerTest, SlotActionsNeedAnAdminsKey) {
  HttpOptions options;
  options.api_keys = ApiKeys({PlainKey("user"), PlainKey("boss", /*admin=*/true)});
  const RunningServer server(options);
  for (const char* action : {"save", "restore", "erase"}) {
    const auto answer = server.Post(std::string("/slots/0?action=") + action, "", {{"x-api-key", "user"}});
    EXPECT_EQ(answer->status, 403) << action;
    EXPECT_NE(answer->body.find("--admin-key"), std::string::npos) << answer->body;
  }
  EXPECT_EQ(server.Get("/slots", {{"x-api-key", "user"}})->status, 200) << "to see them needs none";
  EXPECT_EQ(server.Post("/slots/0?action=erase", "", {{"x-api-key", "boss"}})->status, 200);
}

TEST(HttpServerTest, AdaptersAreListedAndTheirDefaultScalesSet) {
  const RunningServer server;
  const auto scales = [&] {
    std::vector<double> all;
    for (const Json& adapter : Json::parse(server.Get("/lora-adapters")->body)) all.push_back(adapter["scale"]);
    return all;
  };
  EXPECT_EQ(scales(), (std::vector<double>{1, 0}));
  EXPECT_EQ(server.Post("/lora-adapters", R"([{"id": 1, "scale": 0.5}])")->body, "{\"success\":true}\n");
  EXPECT_EQ(scales(), (std::vector<double>{0, 0.5}));
  for (const char* body : {R"({"id": 1})", "[", R"([{"id": 7, "scale": 1}])"}) {
    EXPECT_EQ(server.Post("/lora-adapters", body)->status, 400) << body;
  }
  EXPECT_EQ(scales(), (std::vector<double>{0, 0.5}));
}

TEST(HttpServerTest, DefaultScalesOfAdaptersNeedAnAdminsKey) {
  HttpOptions options;
  options.api_keys = ApiKeys({PlainKey("user"), PlainKey("boss", /*admin=*/true)});
  const RunningServer server(options);
  const auto answer = server.Post("/lora-adapters", "[]", {{"x-api-key", "user"}});
  EXPECT_EQ(answer->status, 403);
  EXPECT_NE(answer->body.find("--admin-key"), std::string::npos) << answer->body;
  EXPECT_EQ(server.Get("/lora-adapters", {{"x-api-key", "user"}})->status, 200) << "to see them needs none";
  EXPECT_EQ(server.Post("/lora-adapters", "[]", {{"x-api-key", "boss"}})->status, 200);
}

// Every endpoint that reuses memory: what was cached tells a key nothing about the prompts of another one.
TEST(HttpServerTest, NoEndpointContinuesFromThePromptOfAnotherKey) {
  const std::string secret = "The password is swordfish, and has been for years.";
  const Json turn = {{"role", "user"}, {"content", secret}};
  const std::string chat = Json{{"messages", Json::array({turn})}, {"max_tokens", 2}, {"temperature", 0}}.dump();
  struct Endpoint {
    const char* path;
    std::string body;
    const char* cached;
  };
  const Endpoint endpoints[] = {
      {"/completion", Json{{"prompt", secret}, {"n_predict", 2}}.dump(), "/timings/cache_n"},
      {"/v1/completions", Json{{"prompt", secret}, {"max_tokens", 2}}.dump(),
       "/usage/prompt_tokens_details/cached_tokens"},
      {"/v1/chat/completions", chat, "/usage/prompt_tokens_details/cached_tokens"},
      {"/v1/responses", Json{{"input", secret}, {"max_output_tokens", 2}}.dump(),
       "/usage/input_tokens_details/cached_tokens"},
      {"/v1/messages", chat, "/usage/cache_read_input_tokens"},
  };
  HttpOptions options;
  options.api_keys = ApiKeys({PlainKey("anna"), PlainKey("bert")});
  for (const Endpoint& endpoint : endpoints) {
    const RunningServer server(options);
    const auto cached = [&](const char* key) {
      const auto answer = server.Post(endpoint.path, endpoint.body, {{"x-api-key", key}});
      EXPECT_EQ(answer->status, 200) << answer->body;
      return Json::parse(answer->body)[Json::json_pointer(endpoint.cached)].get<int>();
    };
    EXPECT_EQ(cached("anna"), 0) << endpoint.path;
    EXPECT_EQ(cached("bert"), 0) << endpoint.path;
    EXPECT_GT(cached("anna"), 20) << endpoint.path << " has no memory at all";
    EXPECT_GT(cached("bert"), 20) << endpoint.path;
  }
}

// Without times and identifiers, which differ anyway.
Json WithoutTimes(const Json& value) {
  if (!value.is_structured()) return value;
  Json kept = value.is_object() ? Json::object() : Json::array();
  for (const auto& [key, part] : value.items()) {
    const bool differs = key.ends_with("_ms") || key.find("per_second") != key.npos || key == "id" || key == "seed" ||
                         key == "item_id" || key == "created" || key.ends_with("ed_at");
    if (value.is_array()) {
      kept.push_back(WithoutTimes(part));
    } else if (!differs) {
      kept[key] = WithoutTimes(part);
    }
  }
  return kept;
}

// The strongest form of the promise: all that bert is told is the same, whatever anna has said before.
TEST(HttpServerTest, WhatAKeyIsToldDoesNotDependOnThePromptsOfAnother) {
  const std::string secret = "The password is swordfish, and has been for years.";
  const Json turn = {{"role", "user"}, {"content", secret}};
  const std::string chat = Json{{"messages", Json::array({turn})}, {"max_tokens", 3}, {"temperature", 0}}.dump();
  const std::string completion = Json{{"prompt", secret},        {"n_predict", 3}, {"temperature", 0},
                                      {"return_progress", true}, {"n_probs", 2},   {"timings_per_token", true}}
                                     .dump();
  HttpOptions options;
  options.api_keys = ApiKeys({PlainKey("anna"), PlainKey("bert"), PlainKey("boss", /*admin=*/true)});
  const auto told_bert = [&](const std::string& annas) {
    const RunningServer server(options, /*n_sequences=*/3);
    const auto say = [&](const char* key, const char* path, const std::string& body) {
      const auto answer = server.Post(path, body, {{"x-api-key", key}});
      EXPECT_EQ(answer->status, 200) << path << answer->body;
      return WithoutTimes(Json::parse(answer->body));
    };
    const auto slots = [&](const char* key) { return Json::parse(server.Get("/slots", {{"x-api-key", key}})->body); };
    Json told = Json::array();
    for (const auto& [path, body] : {std::pair("/completion", completion),
                                     {"/v1/completions", Json{{"prompt", secret}, {"max_tokens", 3}}.dump()},
                                     {"/v1/chat/completions", chat},
                                     {"/v1/responses", Json{{"input", secret}, {"max_output_tokens", 3}}.dump()},
                                     {"/v1/messages", chat}}) {
      say("anna", "/completion", Json{{"prompt", annas}, {"n_predict", 3}, {"temperature", 0}}.dump());
      told.push_back(slots("bert"));
      told.push_back(say("bert", path, body));
      told.push_back(slots("bert"));
    }
    EXPECT_NE(slots("anna"), slots("bert")) << "each sees its own";
    EXPECT_NE(slots("boss"), slots("bert")) << "an administrator sees all";
    Socket watcher(server.server.port());
    EXPECT_TRUE(watcher.Send("GET /live HTTP/1.1\r\nHost: localhost\r\nx-api-key: bert\r\n\r\n"));
    EXPECT_TRUE(watcher.ReadUntil("\n\n"));
    const std::string& event = watcher.received();
    const size_t from = event.find("{\"metrics\"");
    told.push_back(Json::parse(event.substr(from, event.find("\n\n", from) - from))["slots"]);
    // Which slots several answers to one request get depends on when they arrive.
    const std::string twice = Json{{"prompt", secret}, {"max_tokens", 3}, {"n", 2}}.dump();
    told.push_back(say("bert", "/v1/completions", twice)["usage"]);
    return told;
  };
  const Json after_the_same = told_bert(secret);
  EXPECT_EQ(after_the_same, told_bert("Nothing of the kind."));
  EXPECT_EQ(after_the_same, told_bert(std::string(500, 'x')));
}

// --- Budgets

TEST(HttpServerTest, BodiesWithTooMuchInThemAreRefused) {
  HttpOptions options;
  options.json = {.values = 5000, .members = 100};
  const RunningServer server(options);
  Json biases = Json::object();
  for (int i = 0; i < 101; ++i) biases[std::to_string(i)] = 1;
  const std::pair<std::string, const char*> bodies[] = {
      {Json{{"prompt", "x"}, {"logit_bias", biases}}.dump(), "--max-members"},
      {Json{{"prompt", std::vector<int>(6000, 65)}}.dump(), "--max-values"},
      {Json{{"prompt", "x"}, {"stop", std::string(2000, 'x')}}.dump(), "stop"},
      {Json{{"prompt", std::string(500'000, 'x')}}.dump(), "prompt"},  // this one is large
  };
  for (const char* path : {"/completion", "/v1/completions"}) {
    for (const auto& [body, named] : bodies) {
      const auto answer = server.Post(path, body);
      EXPECT_EQ(answer->status, 400) << named;
      EXPECT_NE(answer->body.find(named), std::string::npos) << answer->body;
    }
  }
  EXPECT_EQ(server.Post("/tokenize", Json{{"content", std::string(200'000, 'x')}}.dump())->status, 200);
}

// --- Embeddings

// Embeds once the gate lets it.
struct GatedEmbedder : Embedder {
  int max_tokens() const override { return 100; }
  Result<std::vector<float>> Embed(std::span<const Token>) override {
    begun = true;
    gate.Pass();
    ++embedded;
    return std::vector<float>{1};
  }
  Gate gate;
  std::atomic<bool> begun = false;
  std::atomic<int> embedded = 0;
};

TEST(HttpServerTest, EmbeddingsEndWithTheirClient) {
  GatedEmbedder embedder;
  embedder.gate.Close();
  const RunningServer server({}, 2, {}, &embedder);
  {
    httplib::Client client = server.Client();
    client.set_read_timeout(std::chrono::milliseconds(100));
    EXPECT_FALSE(
        client.Post("/v1/embeddings", Json{{"input", std::vector<std::string>(1000, "x")}}.dump(), "application/json"));
  }
  embedder.gate.Open();
  EXPECT_EQ(server.Post("/v1/embeddings", R"({"input": "x"})")->status, 200);
  EXPECT_LT(embedder.embedded, 1000) << "computed for a client that is gone";
}

TEST(HttpServerTest, EmbeddingsAreCountedAndLimitedLikeGenerations) {
  GatedEmbedder embedder;
  embedder.gate.Close();
  HttpOptions options;
  options.max_generations = 1;
  ApiKey limited = PlainKey("limited");
  limited.limits.tokens_per_minute = 4;
  options.api_keys = ApiKeys({limited, PlainKey("other")});
  const RunningServer server(options, 2, {}, &embedder);
  const auto embed = [&](const char* key, const char* input = "xyz") {
    return server.Post("/v1/embeddings", Json{{"input", input}}.dump(), {{"x-api-key", key}})->status;
  };
  std::thread first([&] { EXPECT_EQ(embed("other"), 200); });
  EXPECT_TRUE(Eventually([&] { return embedder.begun.load(); }));
  EXPECT_EQ(embed("other"), 429) << "the first one occupies the only place";
  embedder.gate.Open();
  first.join();
  EXPECT_TRUE(Eventually([&] { return embed("limited") == 200; }));
  EXPECT_TRUE(Eventually([&] { return embed("limited") == 429; })) << "of tokens-per-minute";
}

TEST(HttpServerTest, EmbeddingsHaveADeadline) {
  GatedEmbedder embedder;
  HttpOptions options;
  options.max_unqueued_time = Duration::zero();
  const RunningServer server(options, 2, {}, &embedder);
  const auto answer = server.Post("/v1/embeddings", R"({"input": "x"})");
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(embedder.embedded, 0);
}

TEST(HttpServerTest, LimitsOfAKeyAre429) {
  ApiKey requests = PlainKey("requests"), tokens = PlainKey("tokens"), slots = PlainKey("slots");
  requests.limits.requests_per_minute = 2;
  tokens.limits.tokens_per_minute = 10;
  slots.limits.slots = 1;
  HttpOptions options;
  options.api_keys = ApiKeys({requests, tokens, slots});
  RunningServer server(options);
  const auto refused = [&](const char* key, const char* limit) {
    const auto answer = server.Post("/completion", Completion(5), {{"x-api-key", key}});
    EXPECT_EQ(answer->status, 429) << key;
    EXPECT_GE(std::stoi("0" + answer->get_header_value("Retry-After")), 1);
    EXPECT_NE(answer->body.find(limit), std::string::npos) << answer->body;
  };
  EXPECT_EQ(server.Post("/tokenize", R"({"content": "x"})", {{"x-api-key", "requests"}})->status, 200);
  EXPECT_EQ(server.Post("/completion", Completion(5), {{"x-api-key", "requests"}})->status, 200);
  refused("requests", "requests-per-minute=2");
  EXPECT_EQ(server.Get("/metrics", {{"x-api-key", "requests"}})->status, 200) << "not counted";

  EXPECT_EQ(server.Post("/completion", Completion(5), {{"x-api-key", "tokens"}})->status, 200)
      << "8 of the prompt and 5 more: allowed, but not once more";
  refused("tokens", "tokens-per-minute=10");

  server.house.gate.Close();
  Socket running(server.server.port());
  const std::string request = PostRequest("/completion", Completion(3));
  ASSERT_TRUE(running.Send(std::string(request).insert(request.find("\r\n") + 2, "x-api-key: slots\r\n")));
  ASSERT_TRUE(
      Eventually([&] { return server.house.scheduler.Slots()[0].busy || server.house.scheduler.Slots()[1].busy; }));
  refused("slots", "slots=1");
  server.house.gate.Open();
  EXPECT_TRUE(running.ReadUntil("\"content\":\"abc\""));
  EXPECT_TRUE(Eventually([&] {
    return server.Post("/completion", Completion(1), {{"x-api-key", "slots"}})->status == 200;
  })) << "free again";
}

// --- Answers

TEST(HttpServerTest, AStreamIsSentAsItIsMade) {
  RunningServer server;
  server.house.gate.Close();
  Socket client(server.server.port());
  ASSERT_TRUE(client.Send(PostRequest("/completion", Completion(3, true))));
  for (const char* letter : {"a", "b", "c"}) {
    EXPECT_EQ(client.received().find(std::string("\"content\":\"") + letter), std::string::npos);
    server.house.gate.LetThrough(1);
    // The engine cannot make the next token yet, so this one has been sent by itself.
    ASSERT_TRUE(client.ReadUntil(std::string("\"content\":\"") + letter)) << client.received();
  }
  EXPECT_NE(client.received().find("text/event-stream"), std::string::npos);
  EXPECT_NE(client.received().find("no-cache"), std::string::npos);
  EXPECT_TRUE(client.ReadUntil("\r\n0\r\n\r\n")) << "the end of chunked transfer";
  EXPECT_NE(client.received().find("\"stop\":true"), std::string::npos) << client.received();
}

TEST(HttpServerTest, ManyAnswersAtOnceDoNotMixTheirTexts) {
  const RunningServer server({}, 4);
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&server, i] {
      const auto answer = server.Post("/completion", Completion(10 + i));
      ASSERT_TRUE(answer);
      EXPECT_EQ(Json::parse(answer->body)["content"], TestScheduler::Says(10 + i));
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(HttpServerTest, AFailureBeforeTheFirstByteIsAnHttpErrorEvenOfAStream) {
  RunningServer server;
  server.house.engine.FailWhile([](const Batch&) { return true; });
  for (const bool stream : {false, true}) {
    const auto answer = server.Post("/completion", Completion(3, stream));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 500) << answer->body;
    EXPECT_EQ(Json::parse(answer->body)["error"]["type"], "server_error");
  }
}

TEST(HttpServerTest, AFailureInTheMiddleIsAnEventOfTheStream) {
  RunningServer server;
  const Pos prompt = static_cast<Pos>(std::string("Say it: ").size());
  server.house.engine.FailWhile([prompt](const Batch& batch) { return batch.rows()[0].pos > prompt + 3; });
  server.house.gate.Close();
  Socket client(server.server.port());
  ASSERT_TRUE(client.Send(PostRequest("/completion", Completion(20, true))));
  server.house.gate.LetThrough(1);
  ASSERT_TRUE(client.ReadUntil("\"content\":\"a"));
  server.house.gate.Open();
  ASSERT_TRUE(client.ReadUntil("\r\n0\r\n\r\n")) << client.received();
  EXPECT_NE(client.received().find("\"error\""), std::string::npos) << client.received();
  EXPECT_EQ(client.received().find("\"stop\":true"), std::string::npos) << client.received();
  EXPECT_EQ(server.Finished(FinishReason::kError), 1u);
}

TEST(HttpServerTest, AClientThatLeavesCancelsItsGeneration) {
  for (const bool stream : {false, true}) {
    RunningServer server;
    server.house.gate.Close();
    {
      Socket client(server.server.port());
      ASSERT_TRUE(client.Send(PostRequest("/completion", Completion(900, stream))));
      server.house.gate.LetThrough(1);
      if (stream) {
        ASSERT_TRUE(client.ReadUntil("\"content\":\"a"));
      }
      ASSERT_TRUE(Eventually([&] { return server.house.scheduler.Stats().steps >= 1; }));
    }
    // Token by token: the engine must not be at the end before the server has looked for its client.
    int tokens = 1;
    EXPECT_TRUE(Eventually([&] {
      server.house.gate.LetThrough(1);
      ++tokens;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return server.Finished(FinishReason::kCancelled) == 1;
    })) << (stream ? "stream" : "whole");
    EXPECT_EQ(server.Finished(FinishReason::kLength), 0u);
    EXPECT_LT(server.house.scheduler.Stats().generated_tokens, 900u) << tokens;
  }
}

// --- Connections

TEST(HttpServerTest, OneConnectionForManyRequests) {
  const RunningServer server;
  Socket client(server.server.port());
  // All at once: the answers come in order, and errors end the connection.
  ASSERT_TRUE(client.Send(PostRequest("/completion", Completion(2)) +
                          "HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n" +
                          PostRequest("/completion", Completion(4, true)) + PostRequest("/nowhere", "{}") +
                          PostRequest("/completion", Completion(6))));
  EXPECT_TRUE(client.ReadToEnd());
  const std::string& all = client.received();
  const size_t first = all.find("\"content\":\"ab\""), head = all.find("Content-Length: 16\r\n"),
               stream = all.find("text/event-stream"), error = all.find("HTTP/1.1 404");
  EXPECT_LT(first, head) << all;
  EXPECT_LT(head, stream) << all;
  EXPECT_LT(stream, error) << all;
  EXPECT_NE(error, std::string::npos) << all;
  EXPECT_EQ(all.find("abcdef"), std::string::npos) << "nothing after an error is read";
}

TEST(HttpServerTest, ClientsThatAskBeforeTheySend) {
  HttpOptions options;
  options.api_keys = ApiKeys({PlainKey("secret")});
  const RunningServer server(options);
  const std::string body = Completion(3);
  const auto head = [&](const char* key) {
    return "POST /completion HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nx-api-key: " + std::string(key) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  };
  Socket client(server.server.port());
  ASSERT_TRUE(client.Send(head("secret")));
  ASSERT_TRUE(client.ReadUntil("HTTP/1.1 100 Continue\r\n\r\n"));
  ASSERT_TRUE(client.Send(body));
  EXPECT_TRUE(client.ReadUntil("\"content\":\"abc\""));
  EXPECT_EQ(client.received().find("100 Continue", 20), std::string::npos) << "once";
  Socket stranger(server.server.port());
  ASSERT_TRUE(stranger.Send(head("wrong")));
  EXPECT_TRUE(stranger.ReadToEnd());
  EXPECT_TRUE(stranger.received().starts_with("HTTP/1.1 401")) << "is not asked for a body: " << stranger.received();
}

// --- Limits

TEST(HttpServerTest, ABodyThatIsTooLargeIsRefused) {
  HttpOptions options;
  options.max_body_bytes = 1000;
  const RunningServer server(options);
  const auto answer = server.Post("/tokenize", Json{{"content", std::string(1001, 'x')}}.dump());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 413);
  EXPECT_NE(answer->body.find("1000 bytes"), std::string::npos) << answer->body;
  const std::string fits = Json{{"content", std::string(900, 'x')}}.dump();
  EXPECT_EQ(server.Post("/tokenize", fits)->status, 200);
}

TEST(HttpServerTest, AFullQueueIs429AndTheWaitingOneIsServed) {
  SchedulerOptions scheduling;
  scheduling.max_queue = 1;
  RunningServer server({}, 1, scheduling);
  server.house.gate.Close();
  Socket running(server.server.port()), waiting(server.server.port());
  ASSERT_TRUE(running.Send(PostRequest("/completion", Completion(3, true))));
  server.house.gate.LetThrough(1);
  ASSERT_TRUE(running.ReadUntil("\"content\":\"a"));
  ASSERT_TRUE(waiting.Send(PostRequest("/completion", Completion(2))));
  ASSERT_TRUE(Eventually([&] { return server.house.scheduler.Stats().queued == 1; }));

  const auto refused = server.Post("/completion", Completion(1));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 429);
  const int retry_after = std::stoi("0" + refused->get_header_value("Retry-After"));
  EXPECT_GE(retry_after, 1);
  EXPECT_LE(retry_after, 60);
  EXPECT_EQ(Json::parse(refused->body)["error"]["code"], 429);
  EXPECT_FALSE(server.Post("/tokenize", R"({"content": "x"})")->has_header("Retry-After"));

  server.house.gate.Open();
  EXPECT_TRUE(running.ReadUntil("\"stop\":true"));
  EXPECT_TRUE(waiting.ReadUntil("\"content\":\"ab\"")) << waiting.received();
}

// However many they are: nobody waits for them, whether a key is needed or not.
TEST(HttpServerTest, SlowSendersHoldNobodyUp) {
  for (const bool keys : {false, true}) {
    HttpOptions options;
    if (keys) options.api_keys = ApiKeys({PlainKey("secret")});
    options.max_generations = 2;
    const RunningServer server(options);
    std::vector<std::unique_ptr<Socket>> slow;
    const std::string key = keys ? "x-api-key: secret\r\n" : "";
    const std::string head = "POST /completion HTTP/1.1\r\nHost: localhost\r\n" + key;
    const std::string body = Completion(3);
    for (int i = 0; i < 150; ++i) {
      slow.push_back(std::make_unique<Socket>(server.server.port()));
      const std::string beginnings[] = {
          head + "X-Slow: ", head + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n{",
          head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"};
      ASSERT_TRUE(slow.back()->Send(beginnings[i % 3]));
    }
    const httplib::Headers sent = {{"x-api-key", "secret"}};
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(server.Get("/health")->status, 200);
      EXPECT_EQ(server.Get("/metrics", sent)->status, 200);
      EXPECT_EQ(server.Post("/completion", body, sent)->status, 200);
      EXPECT_EQ(server.Post("/tokenize", R"({"content": "Hi"})", sent)->status, 200);
    }
    // A slow one is served, too, when it comes to the end of its request.
    ASSERT_TRUE(slow[1]->Send(body.substr(1)));
    EXPECT_TRUE(slow[1]->ReadUntil("\"content\":\"abc\"")) << slow[1]->received();
    for (const char c : body.substr(1)) ASSERT_TRUE(slow[2]->Send(std::string("1\r\n") + c + "\r\n"));
    ASSERT_TRUE(slow[2]->Send("0\r\n\r\n"));
    EXPECT_TRUE(slow[2]->ReadUntil("\"content\":\"abc\"")) << slow[2]->received();
  }
}

TEST(HttpServerTest, SlowSendersAreDropped) {
  HttpOptions options;
  options.head_seconds = options.body_seconds = 0.2;
  const RunningServer server(options);
  Socket head(server.server.port()), body(server.server.port());
  ASSERT_TRUE(head.Send("POST /v1/messages HTT"));
  const std::string request = PostRequest("/v1/messages", "{}");
  ASSERT_TRUE(body.Send(request.substr(0, request.size() - 1)));
  EXPECT_TRUE(head.ReadToEnd());
  EXPECT_TRUE(head.received().starts_with("HTTP/1.1 408 ")) << head.received();
  EXPECT_NE(head.received().find("--http-head-seconds"), std::string::npos) << head.received();
  EXPECT_TRUE(body.ReadToEnd());
  EXPECT_NE(body.received().find("--http-body-seconds"), std::string::npos) << body.received();
  EXPECT_NE(body.received().find(R"({"type":"error")"), std::string::npos) << "in the shape of its protocol";
}

// Requests that wait for a slot have threads, but never all of them.
TEST(HttpServerTest, ManyGenerationsLeaveThreadsForOthers) {
  HttpOptions options;
  options.max_generations = 3;
  RunningServer server(options, 1);
  server.house.gate.Close();
  std::vector<std::unique_ptr<Socket>> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<Socket>(server.server.port()));
    ASSERT_TRUE(clients.back()->Send(PostRequest("/completion", Completion(2))));
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(server.Post("/tokenize", R"({"content": "Hi"})")->status, 200);
  server.house.gate.Open();
  int answered = 0, refused = 0;
  for (const auto& client : clients) {
    ASSERT_TRUE(client->ReadUntil("\r\n\r\n"));
    answered += client->received().starts_with("HTTP/1.1 200");
    if (client->received().starts_with("HTTP/1.1 429")) {
      ++refused;
      EXPECT_NE(client->received().find("Retry-After: "), std::string::npos) << client->received();
    }
  }
  EXPECT_GE(answered, 3);
  EXPECT_EQ(answered + refused, 40);
}

TEST(HttpServerTest, WhatIsNotHttpCostsOneConnection) {
  const RunningServer server;
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00\x01\r\n\r\n", 10), std::string("\r\n\r\n\r\n"), std::string("GET\r\n\r\n"),
        "GET /" + std::string(100'000, 'x') + " HTTP/1.1\r\n\r\n",
        "GET /health HTTP/1.1\r\nX: " + std::string(1'000'000, 'x')}) {
    Socket peer(server.server.port());
    peer.Send(bytes);
    peer.FinishSending();
    if (peer.ReadUntil("\r\n")) {
      EXPECT_TRUE(peer.received().starts_with("HTTP/1.1 4")) << peer.received().substr(0, 200);
    }
    EXPECT_EQ(server.Get("/health")->status, 200);
  }
}

// --- Beginning and end

TEST(HttpServerTest, SaysWhyItCannotListen) {
  RunningServer first;
  HttpOptions options;
  options.port = first.server.port();
  HttpServer second(options, {first.house.context.api, first.info, first.house.scheduler, nullptr, &first.adapters});
  const Status status = second.Listen();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(std::to_string(options.port)), std::string::npos) << status.message();
}

TEST(HttpServerTest, StoppingWaitsForRunningAnswers) {
  RunningServer server;
  server.house.gate.Close();
  Socket client(server.server.port());
  ASSERT_TRUE(client.Send(PostRequest("/completion", Completion(200, true))));
  server.house.gate.LetThrough(1);
  ASSERT_TRUE(client.ReadUntil("\"content\":\"a"));
  std::atomic<bool> stopped = false;
  std::thread stopping([&] {
    server.Stop();
    stopped = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a server that does not wait has stopped by then
  EXPECT_FALSE(stopped);
  server.house.gate.Open();
  EXPECT_TRUE(client.ReadUntil("\"stop\":true")) << client.received();
  stopping.join();
  EXPECT_FALSE(Socket(server.server.port()).connected());
  EXPECT_EQ(server.Finished(FinishReason::kLength), 1u);
}

}  // namespace
}  // namespace outrider
