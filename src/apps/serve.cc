#include "apps/serve.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "apps/version.h"
#include "base/log.h"
#include "engine/llama/backend.h"
#include "engine/llama/llama_embedder.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/llama_filters.h"

namespace outrider {
namespace {

Duration Seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Blocks the signals that end the server in this and all later threads, so that one thread can wait for them.
sigset_t BlockEndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

Result<std::vector<std::string>> CollectKeys(const ServeOptions& options) {
  std::vector<std::string> keys = options.api_keys;
  if (!options.api_key_file.empty()) {
    auto more = ReadKeyFile(options.api_key_file);
    if (!more.ok()) return more.status();
    keys.insert(keys.end(), more->begin(), more->end());
  }
  if (keys.empty() && !IsLoopback(options.http.host) && !options.allow_no_keys) {
    return InvalidArgument(
        fmt::format("--host {} can be reached from other machines: give an --api-key, or --insecure-no-auth if "
                    "everybody may use this server",
                    options.http.host));
  }
  return keys;
}

Status CheckSlotDirectory(const std::string& path) {
  if (path.empty() || std::filesystem::is_directory(path)) return {};
  return InvalidArgument(fmt::format("--slot-save-path '{}' is not a directory", path));
}

Result<std::unique_ptr<ChatTemplate>> MakeChatTemplate(const ServeOptions& options, const LlamaModel& model) {
  std::string source = options.chat_template;
  if (!options.chat_template_file.empty()) {
    std::ifstream file(options.chat_template_file);
    if (!file)
      return InvalidArgument(fmt::format("--chat-template-file '{}' cannot be read", options.chat_template_file));
    std::ostringstream text;
    text << file.rdbuf();
    source = text.str();
  }
  if (source.empty()) source = model.ChatTemplate();
  const LlamaTokenizer& tokenizer = model.tokenizer();
  const auto text = [&](Token token) { return token == kNoToken ? "" : tokenizer.Piece(token, /*show_special=*/true); };
  return ChatTemplate::Create(source, text(tokenizer.bos()), text(tokenizer.eos()));
}

// The first decode builds graphs and touches the weights: better now than in somebody's first request.
Status WarmUp(Engine& engine, const Tokenizer& tokenizer) {
  Batch batch;
  batch.Add({tokenizer.bos() == kNoToken ? 0 : tokenizer.bos(), 0, 0, true});
  Status status = engine.Decode(batch);
  engine.TruncateTo(0, 0);
  return status;
}

void WaitForEnd(const sigset_t& signals, Scheduler& scheduler, double drain_seconds) {
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  LogInfo("{}: no new requests; running ones have {} s (again to stop at once)", strsignal(signal_number),
          drain_seconds);
  scheduler.Drain(Seconds(drain_seconds));
  const timespec tick{0, 50'000'000};
  while (!scheduler.stopped()) {
    if (sigtimedwait(&signals, nullptr, &tick) > 0) scheduler.Drain(Duration::zero());
  }
}

}  // namespace

Status Serve(ServeOptions options) {
  SetLogLevel(options.verbose ? LogLevel::kDebug : LogLevel::kInfo);
  const sigset_t signals = BlockEndSignals();
  auto keys = CollectKeys(options);
  if (!keys.ok()) return keys.status();
  if (Status status = CheckSlotDirectory(options.http.slot_save_path); !status.ok()) return status;
  if (Status status = InitBackend(options.numa); !status.ok()) return status;

  LogInfo("{}", VersionLine());
  const TimePoint start = Clock::Real().Now();
  options.model.exactness = options.context.exactness;
  auto model = LlamaModel::Load(options.model);
  if (!model.ok()) return model.status();
  auto engine = LlamaEngine::Create(*model, options.context);
  if (!engine.ok()) return engine.status();
  auto chat = MakeChatTemplate(options, **model);
  if (!chat.ok()) return chat.status();
  std::unique_ptr<LlamaEmbedder> embedder;
  if (options.embeddings) {
    auto created = LlamaEmbedder::Create(*model, options.context, options.pooling);
    if (!created.ok()) return created.status();
    embedder = std::move(*created);
  }
  const LlamaTokenizer& tokenizer = (*model)->tokenizer();
  if (Status status = WarmUp(**engine, tokenizer); !status.ok()) return status;

  const EngineInfo& info = (*engine)->info();
  LogInfo("model {}: {}, {:.0f} MB, ready in {:.1f} s", options.model.path, (*model)->Description(),
          (*model)->SizeBytes() / 1e6, Milliseconds(Clock::Real().Now() - start) / 1000);
  LogInfo("{} slots of {} tokens, {}", info.n_sequences, info.sequence_length,
          info.exactness.empty() ? "same request, same text" : "text may depend on other requests: " + info.exactness);

  LlamaFilterFactory filters(*model, info.sequence_length);
  if (options.request_seconds > 0) options.scheduler.max_request_time = Seconds(options.request_seconds);
  Scheduler scheduler(**engine, tokenizer, filters, options.scheduler);

  if (options.alias.empty()) options.alias = std::filesystem::path(options.model.path).stem().string();
  ApiContext api{tokenizer,        **chat,           options.alias,     std::time(nullptr), info.sequence_length,
                 info.n_sequences, options.sampling, options.max_tokens};
  api.sampling.seed = static_cast<uint64_t>(options.seed);
  api.random_seed = options.seed < 0;
  const ServerInfo server_info{.model_path = options.model.path,
                               .model_description = (*model)->Description(),
                               .model_bytes = (*model)->SizeBytes(),
                               .model_parameters = (*model)->ParameterCount(),
                               .trained_context = (*model)->TrainedContext(),
                               .embedding_size = (*model)->EmbeddingSize(),
                               .exactness = info.exactness,
                               .build = VersionLine()};
  options.http.api_keys = ApiKeys(std::move(*keys));
  options.http.max_body_bytes = static_cast<size_t>(options.max_body_mib * (1 << 20));
  HttpServer server(options.http, {api, server_info, scheduler, embedder.get()});
  if (Status status = server.Listen(); !status.ok()) return status;

  scheduler.Start();
  std::thread http([&server] { server.Serve(); });
  LogInfo("listening on http://{}:{}", options.http.host, server.port());
  WaitForEnd(signals, scheduler, options.drain_seconds);
  server.Stop();
  http.join();
  LogInfo("stopped");
  return {};
}

}  // namespace outrider
