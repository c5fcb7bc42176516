#include "apps/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <future>

#include "apps/end_signals.h"
#include "apps/version.h"
#include "base/address.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/llama/backend.h"
#include "engine/llama/llama_embedder.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/llama_filters.h"

namespace outrider {
namespace {

Duration Seconds(double seconds) {
  constexpr double kCentury = 3e9;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, kCentury)));
}

// Ends the process without asking anybody: for a second or third signal, and for peers that do not let go.
[[noreturn]] void LeaveAtOnce(int code) {
  std::_Exit(code);
}

Result<std::vector<std::string>> CollectKeys(const ServeOptions& options) {
  std::vector<std::string> keys = options.api_keys;
  if (!options.api_key_file.empty()) {
    auto more = ReadKeyFile(options.api_key_file);
    if (!more.ok()) return more.status();
    keys.insert(keys.end(), more->begin(), more->end());
  }
  if (std::find(keys.begin(), keys.end(), "") != keys.end()) return InvalidArgument("--api-key is empty");
  if (keys.empty() && !IsLoopback(options.http.host) && !options.allow_no_keys) {
    return InvalidArgument(
        fmt::format("--host {} can be reached from other machines: give an --api-key, or --insecure-no-auth if "
                    "everybody may use this server",
                    options.http.host));
  }
  return keys;
}

Status CheckSlotDirectory(const std::string& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::is_directory(path, error)) return {};
  return InvalidArgument(fmt::format("--slot-save-path '{}' is not a directory", path));
}

Result<std::unique_ptr<ChatTemplate>> MakeChatTemplate(const ServeOptions& options, const LlamaModel& model) {
  std::string source = options.chat_template;
  if (!options.chat_template_file.empty()) {
    const std::optional<std::string> text = ReadFile(options.chat_template_file);
    if (!text)
      return InvalidArgument(fmt::format("--chat-template-file '{}' cannot be read", options.chat_template_file));
    source = *text;
  }
  if (source.empty()) source = model.ChatTemplate();
  const LlamaTokenizer& tokenizer = model.tokenizer();
  const auto text = [&](Token token) { return token == kNoToken ? "" : tokenizer.Piece(token, /*show_special=*/true); };
  return ChatTemplate::Create(source, text(tokenizer.bos()), text(tokenizer.eos()));
}

// What can be said of the flags before anything is loaded.
Status CheckSpeculation(const ServeOptions& options) {
  auto drafters = ChooseDrafters(options.speculation);
  if (!drafters.ok()) return drafters.status();
  if (options.replica.empty()) return {};
  if (!options.http.slot_save_path.empty()) return InvalidArgument("--slot-save-path does not work with --replica");
  if (Chosen(*drafters, "remote")) return {};
  return InvalidArgument("--replica needs a drafter that goes on while the target verifies: --spec remote:HOST:PORT");
}

// The first decode builds graphs and touches the weights: better now than in somebody's first request.
Status WarmUp(Engine& engine, const Tokenizer& tokenizer) {
  Batch batch;
  batch.Add({tokenizer.bos() == kNoToken ? 0 : tokenizer.bos(), 0, 0, true});
  Status status = engine.Decode(batch);
  engine.TruncateTo(0, 0);
  return status;
}

// How rejected tokens leave the memory.
std::string DescribeRollback(const EngineInfo& info) {
  switch (info.rollback) {
    case Rollback::kDropCells:
      return "drop cells";
    case Rollback::kDeviceSnapshots:
      return fmt::format("device snapshots of {} tokens", info.device_snapshots);
    case Rollback::kReplay:
      return "restore and replay";
    case Rollback::kNone:
      break;
  }
  return "none";
}

// First signal: running requests may finish. Second: they are cut. Third: out.
void DrainOnSignals(EndSignals& signals, Scheduler& scheduler, double drain_seconds) {
  signals.SetHandler([&scheduler, drain_seconds](int signal, int count) {
    if (count > 2) LeaveAtOnce(128 + signal);
    LogInfo("{}: no new requests; running ones {}", strsignal(signal),
            count == 1 ? fmt::format("have {} s", drain_seconds) : "are cut");
    scheduler.Drain(count == 1 ? Seconds(drain_seconds) : Duration::zero());
  });
}

// Connections get a moment to take the last bytes. A peer that neither sends nor closes must not keep the process.
void StopServer(HttpServer& server, std::future<void>& serving) {
  constexpr std::chrono::seconds kPatience{1};
  server.Stop(kPatience);
  if (serving.wait_for(kPatience) == std::future_status::ready) return;
  LogInfo("stopped, with connections that did not close");
  LeaveAtOnce(0);
}

}  // namespace

Status Serve(ServeOptions options) {
  SetLogLevel(options.verbose ? LogLevel::kDebug : LogLevel::kInfo);
  static EndSignals signals(
      [](int signal, int) { LeaveAtOnce(128 + signal); });  // nothing to lose before the port opens
  auto keys = CollectKeys(options);
  if (!keys.ok()) return keys.status();
  if (Status status = CheckSpeculation(options); !status.ok()) return status;
  if (Status status = CheckSlotDirectory(options.http.slot_save_path); !status.ok()) return status;
  if (Status status = InitBackend(options.numa); !status.ok()) return status;

  LogInfo("{}", VersionLine());
  const TimePoint start = Clock::Real().Now();
  auto target = Target::Load(options.model, options.context);
  if (!target.ok()) return target.status();
  if (!options.replica.empty()) {
    if (Status status = (*target)->AddReplica(options.replica); !status.ok()) return status;
  }
  Engine& engine = (*target)->engine();
  const std::shared_ptr<LlamaModel>& model = (*target)->model();
  auto chat = MakeChatTemplate(options, *model);
  if (!chat.ok()) return chat.status();
  std::unique_ptr<LlamaEmbedder> embedder;
  if (options.embeddings) {
    auto created = LlamaEmbedder::Create(model, options.context, options.pooling);
    if (!created.ok()) return created.status();
    embedder = std::move(*created);
  }
  const LlamaTokenizer& tokenizer = model->tokenizer();
  if (Status status = WarmUp(engine, tokenizer); !status.ok()) return status;

  const EngineInfo& info = engine.info();
  const std::string exactness = (*target)->exactness();
  auto speculation = Speculation::Create(options.speculation, **target);
  if (!speculation.ok()) return speculation.status();
  LogInfo("model {}: {}, {:.0f} MB, ready in {:.1f} s", options.model.path, model->Description(),
          model->SizeBytes() / 1e6, Milliseconds(Clock::Real().Now() - start) / 1000);
  LogInfo("kernels: {}", model->kernels());
  if ((*target)->replicated())
    LogInfo("another copy of the model, on {}",
            options.replica[0] == "none" ? "the CPU" : fmt::format("{}", fmt::join(options.replica, ", ")));
  LogInfo("{} slots of {} tokens, {}", info.n_sequences, info.sequence_length,
          exactness.empty() ? "same request, same text" : "text may depend on other requests: " + exactness);
  if (info.rollback != Rollback::kDropCells) LogInfo("recurrent memory; rollback: {}", DescribeRollback(info));
  LogInfo("{}", (*speculation)->Description());

  LlamaFilterFactory filters(model, info.sequence_length);
  if (options.request_seconds > 0) options.scheduler.max_request_time = Seconds(options.request_seconds);
  Scheduler scheduler(engine, tokenizer, filters, options.scheduler, (*speculation)->TakeSpeculator());

  if (options.alias.empty()) options.alias = std::filesystem::path(options.model.path).stem().string();
  ApiContext api{tokenizer,        **chat,           options.alias,     std::time(nullptr), info.sequence_length,
                 info.n_sequences, options.sampling, options.max_tokens};
  api.drafters = (*speculation)->names();
  api.random_seed = options.seed < 0;
  api.sampling.seed = api.random_seed ? 0 : static_cast<uint64_t>(options.seed);
  const ServerInfo server_info{.model_path = options.model.path,
                               .model_description = model->Description(),
                               .model_bytes = model->SizeBytes(),
                               .model_parameters = model->ParameterCount(),
                               .trained_context = model->TrainedContext(),
                               .embedding_size = model->EmbeddingSize(),
                               .model_fingerprint = model->fingerprint(),
                               .kernels = model->kernels(),
                               .rollback = DescribeRollback(info),
                               .exactness = exactness,
                               .build = VersionLine()};
  options.http.api_keys = ApiKeys(std::move(*keys));
  options.http.max_body_bytes = static_cast<size_t>(options.max_body_mib * (1 << 20));
  HttpServer server(options.http, {api, server_info, scheduler, embedder.get()});
  if (Status status = server.Listen(); !status.ok()) return status;

  scheduler.Start();
  std::future<void> serving = std::async(std::launch::async, [&server] { server.Serve(); });
  DrainOnSignals(signals, scheduler, options.drain_seconds);
  LogInfo("listening on http://{}:{}", options.http.host, server.port());
  scheduler.WaitUntilStopped();
  StopServer(server, serving);
  signals.SetHandler([](int signal, int) { LeaveAtOnce(128 + signal); });
  LogInfo("stopped");
  return {};
}

}  // namespace outrider
