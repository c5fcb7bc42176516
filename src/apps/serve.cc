#include "apps/serve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <future>
#include <limits>
#include <memory>
#include <utility>

#include "api/response_memory.h"
#include "apps/end_signals.h"
#include "apps/fetch_models.h"
#include "apps/model_chat.h"
#include "apps/request_defaults.h"
#include "apps/serve_checks.h"
#include "apps/version.h"
#include "base/address.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/llama/backend.h"
#include "engine/llama/llama_embedder.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/llama_filters.h"
#include "engine/llama/media_reader.h"

namespace outrider {
namespace {

Duration Seconds(double seconds) {
  constexpr double kCentury = 3e9;  // far enough, and well within what Duration can hold
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, kCentury)));
}

// Ends the process without cleaning up: for repeated signals, and for peers that do not close their connections.
[[noreturn]] void ExitAtOnce(int code) {
  std::_Exit(code);
}

void EndOnSignal(int signal, int) {
  ExitAtOnce(128 + signal);
}

Result<std::unique_ptr<ChatTemplate>> MakeChatTemplate(const ChatFlags& flags, const Json& arguments,
                                                       const LlamaModel& model) {
  if (flags.source_file.empty()) return ChatTemplateOf(model, flags.source, arguments);
  const std::optional<std::string> text = ReadFile(flags.source_file);
  if (!text) return InvalidArgument(fmt::format("--chat-template-file '{}' cannot be read", flags.source_file));
  return ChatTemplateOf(model, *text, arguments);
}

// The first decode builds graphs and reads the weights from disk. Doing that here keeps the first request fast.
Status WarmUp(Engine& engine, const Tokenizer& tokenizer, const AdapterSet& adapters) {
  Batch batch;
  batch.Clear(adapters);
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

// At the first signal running requests may finish; at the second they are cut off; at the third the process ends.
void DrainOnSignals(EndSignals& signals, Scheduler& scheduler, double drain_seconds) {
  signals.SetHandler([&scheduler, drain_seconds](int signal, int count) {
    if (count > 2) ExitAtOnce(128 + signal);
    LogInfo("{}: new requests are refused; running ones {}", strsignal(signal),
            count == 1 ? fmt::format("may take {} s to finish", drain_seconds) : "are ended now");
    scheduler.Drain(count == 1 ? Seconds(drain_seconds) : Duration::zero());
  });
}

// Connections get a moment to receive the last bytes. A peer that neither sends nor closes must not keep the process
// alive.
void StopServer(HttpServer& server, std::future<void>& serving) {
  constexpr std::chrono::seconds kCloseTimeout{1};
  server.Stop(kCloseTimeout);
  if (serving.wait_for(2 * kCloseTimeout) == std::future_status::ready) return;
  LogInfo("stopped, with connections that did not close");
  ExitAtOnce(0);
}

// Requests that are being read or sent count, too, besides those that run and wait: the queue's limit is to be met
// first.
int MaxGenerations(const ServeOptions& options) {
  constexpr int kOnTheirWay = 16;
  return static_cast<int>(
      std::min<int64_t>(int64_t{options.context.n_sequences} + options.scheduler.max_queue + kOnTheirWay,
                        std::numeric_limits<int>::max()));
}

// Each connection is a file to the system, which often allows 1024 unless a program asks for more.
void RaiseFileLimit(int connections) {
  constexpr rlim_t kOtherFiles = 256;
  const rlim_t wanted = static_cast<rlim_t>(connections) + kOtherFiles;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

// As the log and /props may show it.
std::string ShownPath(const ServeOptions& options, const std::string& path) {
  return options.show_paths ? path : std::filesystem::path(path).filename().string();
}

std::unique_ptr<AdapterList> ListAdapters(const ServeOptions& options, const LlamaModel& model,
                                          const std::vector<float>& scales) {
  std::vector<AdapterInfo> adapters;
  for (const LlamaAdapter& adapter : model.adapters()) {
    adapters.push_back(adapter.info);
    adapters.back().path = ShownPath(options, adapter.info.path);
  }
  return std::make_unique<AdapterList>(std::move(adapters), scales);
}

// What is loaded before the port is opened. A member may use those before it, which it does not outlive.
struct LoadedParts {
  std::unique_ptr<Target> target;
  std::unique_ptr<AdapterList> adapters;
  std::unique_ptr<ChatTemplate> chat;
  std::unique_ptr<LlamaEmbedder> embedder;  // null without --embeddings
  std::unique_ptr<LlamaMediaReader> media;  // null without --mmproj
  std::unique_ptr<Speculation> speculation;
};

Result<LoadedParts> LoadParts(const ServeOptions& options, const RequestDefaults& defaults) {
  LoadedParts parts;
  ModelOptions with_head = options.model;
  with_head.heads = WantsHeadOfTarget(options.speculation);
  auto adapters = NameAdapters(options.adapters);
  if (!adapters.ok()) return adapters.status();
  with_head.adapters = adapters->paths;
  auto target = Target::Load(with_head, options.context);
  if (!target.ok()) return target.status();
  if (!options.replica.empty()) {
    if (Status status = (*target)->AddReplica(options.replica); !status.ok()) return status;
  }
  const std::shared_ptr<LlamaModel>& model = (*target)->model();
  auto chat = MakeChatTemplate(options.chat, defaults.template_arguments, *model);
  if (!chat.ok()) return chat.status();
  if (options.embeddings || options.reranking) {
    const std::string pooling = options.reranking ? "rank" : options.pooling;
    auto embedder = LlamaEmbedder::Create(model, options.context, pooling);
    if (!embedder.ok()) return embedder.status();
    parts.embedder = std::move(*embedder);
  }
  if (!options.media.path.empty()) {
    MediaOptions with_threads = options.media;
    with_threads.threads = options.context.threads_batch > 0 ? options.context.threads_batch : options.context.threads;
    auto media = LlamaMediaReader::Load(model, with_threads);
    if (!media.ok()) return media.status();
    parts.media = std::move(*media);
  }
  parts.adapters = ListAdapters(options, *model, adapters->scales);
  const AdapterSet defaults_of_adapters = parts.adapters->Defaults();
  if (Status status = WarmUp((*target)->engine(), model->tokenizer(), defaults_of_adapters); !status.ok())
    return status;
  auto speculation = Speculation::Create(options.speculation, **target);
  if (!speculation.ok()) return speculation.status();
  parts.target = std::move(*target);
  parts.chat = std::move(*chat);
  parts.speculation = std::move(*speculation);
  return parts;
}

void LogParts(const ServeOptions& options, LoadedParts& parts, Duration load_time) {
  Target& target = *parts.target;
  const LlamaModel& model = *target.model();
  const EngineInfo& info = target.engine().info();
  const std::string exactness = target.exactness();
  LogInfo("model {}: {}, {:.0f} MB, ready in {:.1f} s", ShownPath(options, options.model.path), model.Description(),
          model.SizeBytes() / 1e6, Milliseconds(load_time) / 1000);
  LogInfo("kernels: {}", model.kernels());
  for (const Json& adapter : parts.adapters->Describe()) {
    LogInfo("adapter {}: {}, scale {}", adapter["id"].get<int>(), adapter["path"].get<std::string>(),
            adapter["scale"].get<float>());
  }
  if (target.replicated())
    LogInfo("another copy of the model, on {}",
            options.replica[0] == "none" ? "the CPU" : fmt::format("{}", fmt::join(options.replica, ", ")));
  LogInfo("{} slots of {} tokens, {}", info.n_sequences, info.sequence_length,
          exactness.empty() ? "same request, same text" : "text may depend on other requests: " + exactness);
  if (info.rollback != Rollback::kDropCells) LogInfo("recurrent memory; rollback: {}", DescribeRollback(info));
  LogInfo("{}", parts.speculation->Description());
}

ApiContext MakeApiContext(const ServeOptions& options, const RequestDefaults& defaults, LoadedParts& parts) {
  const EngineInfo& info = parts.target->engine().info();
  const std::string alias =
      options.aliases.empty() ? std::filesystem::path(options.model.path).stem().string() : options.aliases.front();
  ApiContext api{parts.target->model()->tokenizer(),
                 *parts.chat,
                 alias,
                 std::time(nullptr),
                 info.sequence_length,
                 info.n_sequences,
                 defaults.sampling,
                 std::max(options.max_tokens, -1)};
  api.drafters = parts.speculation->names();
  api.random_seed = options.seed < 0;
  api.aliases = options.aliases;
  api.stop = defaults.stop;
  api.ignore_eos = options.requests.ignore_eos;
  api.reuse_prefix = options.requests.reuse_prefix;
  api.verbose = options.log.verbose;
  api.reasoning = options.chat.answer;
  api.batch = info.max_batch;
  api.suffix_first = options.suffix_first;
  api.media = parts.media.get();
  api.rank_template = parts.target->model()->RankTemplate();
  api.adapters = parts.adapters.get();
  return api;
}

ServerInfo MakeServerInfo(const ServeOptions& options, LoadedParts& parts) {
  const LlamaModel& model = *parts.target->model();
  return {.model_path = ShownPath(options, options.model.path),
          .model_description = model.Description(),
          .model_bytes = model.SizeBytes(),
          .model_parameters = model.ParameterCount(),
          .trained_context = model.TrainedContext(),
          .embedding_size = model.EmbeddingSize(),
          .model_fingerprint = model.fingerprint(),
          .kernels = model.kernels(),
          .rollback = DescribeRollback(parts.target->engine().info()),
          .exactness = parts.target->exactness(),
          .exactness_rests_on = parts.target->ExactnessRestsOn(),
          .build = VersionLine(),
          .slots = options.http.slots,
          .page = options.http.page,
          .quantisation = model.FileType()};
}

// Main memory for prompts beyond those of the slots.
uint64_t CacheBytes(const ServeOptions& options) {
  constexpr uint64_t kMib = 1 << 20, kDefaultMib = 8192;
  if (options.cache_mib == -1) return std::numeric_limits<uint64_t>::max();
  if (options.cache_mib >= 0) return static_cast<uint64_t>(options.cache_mib) * kMib;
  const bool remote = !options.model.rpc_servers.empty();  // copies would go over the network
  return remote ? 0 : std::min(kDefaultMib * kMib, TotalMemory() / 8);
}

// Listens and serves until signals have stopped the scheduler.
Status RunServer(const ServeOptions& options, const RequestDefaults& defaults, const HttpOptions& http,
                 LoadedParts& parts, EndSignals& signals) {
  ResponseMemory responses(static_cast<uint64_t>(options.response_memory_mib * (1 << 20)));
  ApiContext api = MakeApiContext(options, defaults, parts);
  if (options.response_memory_mib > 0) api.responses = &responses;
  const ServerInfo info = MakeServerInfo(options, parts);
  Engine& engine = parts.target->engine();
  LlamaFilterFactory filters(parts.target->model(), engine.info().sequence_length);
  SchedulerOptions scheduling = options.scheduler;
  // A device reads 512 tokens in little more time than 128, and is slow whenever the shape of a step changes.
  const int slice = parts.target->model()->placement() == Placement::kDevice ? 512 : 128;
  scheduling.prompt_slice = options.prompt_slice > 0 ? options.prompt_slice : slice;
  scheduling.cache_bytes = CacheBytes(options);
  if (options.request_seconds > 0) scheduling.max_request_time = Seconds(options.request_seconds);
  Scheduler scheduler(engine, parts.target->model()->tokenizer(), filters, scheduling,
                      parts.speculation->TakeSpeculator());
  const Services services{api, info, scheduler, parts.embedder.get(), parts.adapters.get(), [&parts] {
                            return parts.speculation->DraftServers();
                          }};
  HttpServer server(http, services);
  if (Status status = server.Listen(); !status.ok()) return status;

  scheduler.Start();
  std::future<void> serving = std::async(std::launch::async, [&server] { server.Serve(); });
  DrainOnSignals(signals, scheduler, options.drain_seconds);
  const bool ipv6 = http.host.find(':') != std::string::npos;
  LogInfo("listening on {}://{}:{}", http.tls ? "https" : "http", ipv6 ? fmt::format("[{}]", http.host) : http.host,
          server.port());
  scheduler.WaitUntilStopped();
  StopServer(server, serving);
  signals.SetHandler(EndOnSignal);  // the old handler refers to the scheduler, which ends here
  return {};
}

Status SetUpLog(const LogFlags& flags) {
  LogLevel level = flags.verbosity >= 4 ? LogLevel::kDebug : LogLevel::kInfo;
  if (flags.verbosity <= 2) level = flags.verbosity == 2 ? LogLevel::kWarning : LogLevel::kError;
  if (flags.verbose) level = LogLevel::kDebug;
  SetLogLevel(flags.disabled ? LogLevel::kNone : level);
  SetLogFormat(flags.format);
  return flags.file.empty() ? Status() : SetLogFile(flags.file);
}

}  // namespace

Status Serve(ServeOptions options) {
  if (Status status = SetUpLog(options.log); !status.ok()) return status;
  static EndSignals signals(EndOnSignal);  // there is nothing to lose before the port opens
  auto keys = CollectApiKeys(options);
  if (!keys.ok()) return keys.status();
  if (Status status = CheckSpeculation(options); !status.ok()) return status;
  if (Status status = CheckSlotDirectory(options.http.slot_files.folder); !status.ok()) return status;
  if (Status status = CheckChatTemplate(options.chat.source); !status.ok()) return status;
  if (Status status = CheckPathPrefix(options.http.path_prefix); !status.ok()) return status;
  auto tls = LoadTls(options);
  if (!tls.ok()) return tls.status();
  auto defaults = MakeRequestDefaults(options);
  if (!defaults.ok()) return defaults.status();
  if (Status status = FetchModels(options); !status.ok()) return status;
  if (Status status = InitBackend(options.numa); !status.ok()) return status;

  LogInfo("{}", VersionLine());
  for (const std::string& note : options.notes) LogInfo("{}", note);
  const TimePoint start = Clock::Real().Now();
  auto parts = LoadParts(options, *defaults);
  if (!parts.ok()) return parts.status();
  LogParts(options, *parts, Clock::Real().Now() - start);

  HttpOptions http = options.http;
  http.api_keys = ApiKeys(std::move(*keys));
  http.tls = std::move(*tls);
  for (std::string& name : NamesOfThisMachine()) http.allowed_hosts.push_back(std::move(name));
  http.max_body_bytes = static_cast<size_t>(options.max_body_mib * (1 << 20));
  http.max_buffered_bytes = static_cast<size_t>(options.max_buffered_mib * (1 << 20));
  http.max_generations = MaxGenerations(options);
  http.slot_files.max_bytes = static_cast<uint64_t>(options.slot_save_mib * (1 << 20));
  if (options.request_seconds > 0) http.max_unqueued_time = Seconds(options.request_seconds);
  RaiseFileLimit(http.max_connections);
  if (Status status = RunServer(options, *defaults, http, *parts, signals); !status.ok()) return status;
  LogInfo("stopped");
  return {};
}

}  // namespace outrider
