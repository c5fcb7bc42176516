// outrider: one program, a subcommand for each thing it does.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "apps/bench.h"
#include "apps/bench_flags.h"
#include "apps/check.h"
#include "apps/draft.h"
#include "apps/flags.h"
#include "apps/plan.h"
#include "apps/serve.h"
#include "apps/serve_flags.h"
#include "apps/states.h"
#include "apps/version.h"
#include "base/freed_memory.h"
#include "download/model_download.h"
#include "engine/llama/backend.h"
#include "remote/certificates.h"

namespace outrider {
namespace {

constexpr int kNotExact = 1;
constexpr int kIncomplete = 1;
constexpr int kBadUsage = 2;

constexpr const char* kHelp =
    "usage: outrider [COMMAND] [FLAGS]\n\n"
    "  serve    serve a model over HTTP (the default)\n"
    "  check    test that speculation and batching do not change the text on this machine\n"
    "  bench    compare speeds, with and without drafts, or of different servers\n"
    "  plan     predict the speed-up of drafting, from a few seconds of measuring\n"
    "  draft    draft for servers on other machines\n"
    "  cert     make certificates for that\n"
    "  states   write down what a model computes for texts, for ./run distill\n\n"
    "outrider COMMAND --help lists the flags of a command; outrider --version prints the version.\n";

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "outrider: %s\n", sentence.c_str());
  return kBadUsage;
}

// A subcommand with its flags.
template <typename Options>
struct Command {
  const char* name;
  const char* purpose;
  void (*add_flags)(Flags& flags, Options& options);
  int (*run)(Options options);
};

// What the flags ask to print instead of serving; whether there was something.
bool Print(const PrintFlags& flags) {
  if (flags.version) std::printf("%s\n", VersionLine().c_str());
  if (flags.devices && InitBackend().ok()) std::printf("%s\n", DeviceSummary().c_str());
  if (flags.cached_models) {
    for (const std::string& name : CachedModels()) std::printf("%s\n", name.c_str());
  }
  return flags.version || flags.devices || flags.cached_models;
}

int RunServe(ServeOptions options) {
  if (Print(options.print)) return 0;
  const Status status = Serve(std::move(options));
  return status.ok() ? 0 : Fail(status.message());
}

int RunCheck(ServeOptions options) {
  bool exact = false;
  const Status status = Check(std::move(options), &exact);
  if (!status.ok()) return Fail(status.message());
  return exact ? 0 : kNotExact;
}

int RunBench(BenchOptions options) {
  bool complete = false;
  const Status status = Bench(options, &complete);
  if (!status.ok()) return Fail(status.message());
  return complete ? 0 : kIncomplete;
}

int RunPlan(PlanOptions options) {
  const Status status = Plan(options);
  return status.ok() ? 0 : Fail(status.message());
}

int RunDraft(DraftOptions options) {
  const Status status = ServeDrafts(std::move(options));
  return status.ok() ? 0 : Fail(status.message());
}

int RunStates(StatesOptions options) {
  const Status status = ExportStates(options);
  return status.ok() ? 0 : Fail(status.message());
}

struct CertOptions {
  std::string folder = "certificates";
  std::vector<std::string> hosts;
};

void AddCertFlags(Flags& flags, CertOptions& options) {
  flags.Group("Certificates");
  flags.Add("--out", options.folder, "folder to write to; an authority that is there already is used again");
  flags.Add("--host", options.hosts, "names and addresses clients reach the draft server by, comma-separated")
      ->delimiter(',');
}

int RunCert(CertOptions options) {
  const Status status = MakeCertificates(options.folder, options.hosts);
  if (!status.ok()) return Fail(status.message());
  std::printf(
      "%s has the certificates. The draft server needs ca.crt, server.crt and server.key (outrider draft --cert "
      "FOLDER),\nits clients ca.crt, client.crt and client.key (--spec remote:HOST:PORT,cert=FOLDER). ca.key "
      "stays where it is.\n",
      options.folder.c_str());
  return 0;
}

constexpr Command<ServeOptions> kServe = {
    "serve", "Serves a model over HTTP with OpenAI's, Anthropic's and llama.cpp's APIs.", AddServeFlags, RunServe};
constexpr Command<ServeOptions> kCheck = {
    "check", "Tests that logits do not depend on the batch and that no drafter changes a text.", AddServeFlags,
    RunCheck};
constexpr Command<BenchOptions> kBench = {
    "bench", "Compares speeds, with and without drafts or of different servers, and checks that texts are the same.",
    AddBenchFlags, RunBench};
constexpr Command<PlanOptions> kPlan = {"plan", "Predicts the speed-up of drafting with these models on this machine.",
                                        AddPlanFlags, RunPlan};
constexpr Command<DraftOptions> kDraft = {
    "draft", "Serves a draft model to Outriders on other machines (their --spec remote:HOST:PORT).", AddDraftFlags,
    RunDraft};
constexpr Command<StatesOptions> kStates = {
    "states", "Writes down what a model computes for each token of given texts, for ./run distill.", AddStatesFlags,
    RunStates};
constexpr Command<CertOptions> kCert = {"cert", "Makes certificates for a draft server and its clients.", AddCertFlags,
                                        RunCert};

template <typename Options>
int Run(const Command<Options>& command, int argc, const char* const* argv) {
  CLI::App app(command.purpose, std::string("outrider ") + command.name);
  Options options;
  Flags flags(app);
  command.add_flags(flags, options);
  if (argc == 1 && std::strcmp(argv[0], "--help-markdown") == 0) {
    std::printf("# Flags of `outrider %s`\n\nWritten by `outrider %s --help-markdown`; a test keeps it true.\n%s",
                command.name, command.name, flags.MarkdownHelp().c_str());
    return 0;
  }
  const auto environment = [](const char* variable) -> const char* { return std::getenv(variable); };
  if (Status status = flags.Parse(argc, argv, environment); !status.ok()) return Fail(status.message());
  if (flags.help_wanted()) {
    std::printf("%s\n\nusage: outrider %s [FLAGS]\n%s", command.purpose, command.name, flags.Help().c_str());
    std::puts("  --config FILE                          flags from a file: key = value, keys named as the long flags");
    return 0;
  }
  if constexpr (requires { options.notes; }) options.notes = flags.notes();
  return command.run(std::move(options));
}

int Main(int argc, const char* const* argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (command == "--version" || command == "version") {
    std::printf("%s\n", VersionLine().c_str());
    return 0;
  }
  if (command == kServe.name) return Run(kServe, argc - 2, argv + 2);
  if (command == kCheck.name) return Run(kCheck, argc - 2, argv + 2);
  if (command == kBench.name) return Run(kBench, argc - 2, argv + 2);
  if (command == kPlan.name) return Run(kPlan, argc - 2, argv + 2);
  if (command == kDraft.name) return Run(kDraft, argc - 2, argv + 2);
  if (command == kCert.name) return Run(kCert, argc - 2, argv + 2);
  if (command == kStates.name) return Run(kStates, argc - 2, argv + 2);
  if (command == "distill")
    return Fail("distill is started with ./run distill (docs/DISTILL.md), not with this program");
  if (command.empty() || command[0] == '-') return Run(kServe, argc - 1, argv + 1);
  return Fail("'" + command + "' is not a command; outrider --help lists them");
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  outrider::LimitFreedMemory();
  try {
    return outrider::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "outrider: %s\n", error.what());
    return 1;
  }
}
