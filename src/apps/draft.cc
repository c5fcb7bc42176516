#include "apps/draft.h"

#include <filesystem>
#include <future>

#include "apps/end_signals.h"
#include "apps/loaded_draft_model.h"
#include "apps/version.h"
#include "base/log.h"
#include "base/metrics_writer.h"
#include "engine/llama/backend.h"
#include "http/metrics_server.h"

namespace outrider {
namespace {

constexpr Pos kSequenceLength = 4096;

std::string Metrics(const DraftStats& stats) {
  MetricsWriter out;
  out.Gauge("outrider_draft_streams", "Streams that are open now", stats.streams);
  out.Counter("outrider_draft_streams_opened_total", "Streams that got a sequence", stats.opened);
  out.Counter("outrider_draft_streams_refused_total", "Streams that found no sequence free", stats.refused);
  out.Counter("outrider_draft_streams_broken_total", "Streams that broke a rule of the protocol", stats.broken);
  out.Counter("outrider_draft_context_tokens_total", "Tokens of contexts that were sent", stats.context_tokens);
  out.Counter("outrider_draft_reused_tokens_total", "Tokens of contexts that were here already", stats.reused_tokens);
  out.Counter("outrider_draft_commits_total", "Commit messages received", stats.commits);
  out.Counter("outrider_draft_committed_tokens_total", "Tokens of commits", stats.committed_tokens);
  out.Counter("outrider_draft_tokens_drafted_total", "Tokens drafted", stats.drafted_tokens);
  out.Counter("outrider_draft_tokens_sent_total", "Tokens sent", stats.sent_tokens);
  out.Counter("outrider_draft_seconds_total", "Time spent reading and drafting", stats.draft_seconds);
  return out.Take();
}

}  // namespace

void AddDraftFlags(Flags& flags, DraftOptions& o) {
  flags.Group("Model");
  flags.Add("-m,--model", o.model.path, "GGUF file of the draft model; of a split model, the first part");
  flags.Add("-ngl,--gpu-layers,--n-gpu-layers", o.model.gpu_layers, "layers kept on the devices; -1 = all layers")
      ->check(CLI::Range(-1, 1 << 20));
  flags.Add("-dev,--device", o.model.devices, "devices to use, comma-separated; none = CPU only")->delimiter(',');
  flags.Add("-t,--threads", o.context.threads, "threads; 0 = one per physical core")->check(CLI::Range(0, 4096));
  flags
      .Add("-c,--ctx-size", o.context.context_tokens,
           "context in tokens over all sequences; 0 = up to 4096 for each, or what the model was trained for if that "
           "is less")
      ->check(CLI::NonNegativeNumber);
  flags.Add("-np,--parallel", o.context.n_sequences, "sequences drafted side by side, of all clients together")
      ->check(CLI::PositiveNumber);

  flags.Group("Server");
  flags.Add("--listen", o.server.listen, "host:port to listen on; beyond this machine only with --cert or --insecure");
  flags.Add("--cert", o.server.credentials.folder, "folder with ca.crt, server.crt and server.key (outrider cert)");
  flags.Add("--token", o.server.credentials.token, "secret that clients may send instead of a certificate");
  flags.Switch("--insecure", o.server.credentials.insecure,
               "plain text to other machines: anybody in between reads all prompts and answers");
  flags.Add("--metrics", o.metrics,
            "host:port that serves Prometheus' GET /metrics, and GET /health; default: nowhere");
  flags
      .Add("--streams-per-client", o.server.batcher.streams_per_client,
           "sequences one client may have at a time; 0 = all of them")
      ->check(CLI::NonNegativeNumber);

  flags.Group("Drafting");
  flags.Add("--ahead", o.server.batcher.ahead, "length of a draft, in tokens")->check(CLI::Range(1, 128));
  flags.Add("--window", o.server.batcher.window, "tokens the draft model looks back on; 0 = its context")
      ->check(CLI::NonNegativeNumber);
  flags.Switch("-v,--verbose", o.verbose, "log more");
}

Status ServeDrafts(DraftOptions options) {
  SetLogLevel(options.verbose ? LogLevel::kDebug : LogLevel::kInfo);
  static std::promise<int> stop;
  static EndSignals signals([](int signal, int count) {
    if (count > 1) std::_Exit(128 + signal);
    stop.set_value(signal);
  });
  if (options.model.path.empty()) return InvalidArgument("which model? -m FILE.gguf");
  if (Status status = InitBackend(""); !status.ok()) return status;
  LogInfo("{}", VersionLine());
  auto model = LoadedDraftModel::Load(options.model, options.context, kSequenceLength, nullptr);
  if (!model.ok()) return model.status();
  const EngineInfo& info = (*model)->model().engine.info();
  options.server.batcher.model_name = std::filesystem::path(options.model.path).stem().string();
  auto server = DraftServer::Start((*model)->model(), options.server);
  if (!server.ok()) return server.status();
  std::unique_ptr<MetricsServer> metrics;
  if (!options.metrics.empty()) {
    auto started = MetricsServer::Start(options.metrics, [server = server->get()] { return Metrics(server->stats()); });
    if (!started.ok()) return started.status();
    metrics = std::move(*started);
    LogInfo("metrics on port {}", metrics->port());
  }
  LogInfo("model {}: {}; {} sequences of {} tokens", std::filesystem::path(options.model.path).filename().string(),
          (*model)->Description(), info.n_sequences, info.sequence_length);
  LogInfo("drafting on port {}{}", (*server)->port(),
          options.server.credentials.folder.empty() ? ", in plain text" : ", with certificates");
  stop.get_future().wait();
  metrics.reset();
  server->reset();
  LogInfo("stopped");
  return {};
}

}  // namespace outrider
