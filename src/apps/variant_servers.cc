#include "apps/variant_servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <set>
#include <utility>

#include "apps/command_line.h"
#include "base/clock.h"
#include "base/secrets.h"

namespace outrider {
namespace {

constexpr auto kLoadTimeout = std::chrono::minutes(20);
constexpr auto kPollInterval = std::chrono::milliseconds(500);

using Words = std::vector<std::string>;

void Append(Words* words, const Words& more) {
  words->insert(words->end(), more.begin(), more.end());
}

// The value of a flag that takes NAME=WORDS; `form` says so in errors.
struct Named {
  std::string name;
  Words words;
};
Result<Named> ParseNamed(const std::string& text, const std::string& form) {
  const size_t at = text.find('=');
  if (at == text.npos) return InvalidArgument(fmt::format("{}, not '{}'", form, HideSecrets(text)));
  auto words = SplitWords(text.substr(at + 1));
  if (!words.ok()) return words.status();
  return Named{text.substr(0, at), std::move(*words)};
}

// Flags that Outrider and llama-server understand alike.
Words SharedFlags(const BenchOptions& options) {
  Words flags;
  if (options.threads > 0) Append(&flags, {"-t", std::to_string(options.threads)});
  if (options.gpu_layers >= 0) Append(&flags, {"-ngl", std::to_string(options.gpu_layers)});
  const int slots = *std::max_element(options.concurrency.begin(), options.concurrency.end());
  Append(&flags, {"-np", std::to_string(slots)});
  return flags;
}

// Without drafts, with them, and as --variant says.
Status AddOutriders(const BenchOptions& options, std::vector<VariantServer>* servers) {
  // --spec-forget: a drafter that learned an answer in an earlier run would look better than it is.
  Words command = {std::filesystem::read_symlink("/proc/self/exe").string(), "serve", "-m", options.model,
                   "--spec-forget"};
  Append(&command, SharedFlags(options));
  const auto common = SplitWords(options.flags);
  if (!common.ok()) return common.status();
  Append(&command, *common);
  const auto add = [&](const std::string& name, const Words& flags) {
    Words with_flags = command;
    Append(&with_flags, flags);
    servers->push_back({.name = name, .command = std::move(with_flags), .is_outrider = true});
  };
  add("plain", {"--spec", "none"});
  const bool only_auto = options.drafters.empty();
  if (only_auto) add("auto", {"--spec", "auto"});
  Words drafting;
  for (const std::string& drafter : options.drafters) Append(&drafting, {"--spec", drafter});
  if (!options.draft.empty()) Append(&drafting, {"-md", options.draft});
  if (!drafting.empty()) add(only_auto ? "auto + draft" : "speculative", drafting);
  for (const std::string& variant : options.variants) {
    const auto named = ParseNamed(variant, "--variant needs NAME=FLAGS");
    if (!named.ok()) return named.status();
    add(named->name, named->words);
  }
  return {};
}

// Whether the flags of a llama-server choose its drafts already.
bool ChoosesDrafts(const Words& command) {
  return std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return word == "-md" || word == "--model-draft" || word.starts_with("--spec-");
  });
}

// llama-servers: as they are told, and with the draft model unless their own flags choose drafts.
Status AddOthers(const BenchOptions& options, std::vector<VariantServer>* servers) {
  for (const std::string& against : options.against) {
    const std::string form = "--against needs NAME=PROGRAM, such as llama-server=/usr/bin/llama-server";
    auto named = ParseNamed(against, form);
    if (!named.ok()) return named.status();
    if (named->words.empty()) return InvalidArgument(fmt::format("{}, not '{}'", form, HideSecrets(against)));
    const bool with_draft = !options.draft.empty() && !ChoosesDrafts(named->words);
    Words command = std::move(named->words);
    Append(&command, {"-m", options.model});
    Append(&command, SharedFlags(options));
    servers->push_back({.name = named->name, .command = command});
    if (!with_draft) continue;
    Append(&command, {"-md", options.draft, "--spec-type", "draft-simple"});
    servers->push_back({.name = named->name + " + draft", .command = std::move(command)});
  }
  return {};
}

void AddRunning(const BenchOptions& options, std::vector<VariantServer>* servers) {
  for (const std::string& url : options.urls) {
    const size_t at = url.find('=');
    const bool named = at < url.find(':');
    servers->push_back({.name = named ? url.substr(0, at) : url, .url = named ? url.substr(at + 1) : url});
  }
}

Result<std::string> StartProcess(VariantServer& server, const std::string& folder) {
  const auto port = FreePort();
  if (!port.ok()) return port.status();
  Words command = server.command;
  Append(&command, {"--host", "127.0.0.1", "--port", std::to_string(*port)});
  std::string file = server.name;
  std::replace_if(
      file.begin(), file.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
  auto process = ChildProcess::Start(command, folder + "/" + file + ".log");
  if (!process.ok()) return process.status();
  server.process = std::move(*process);
  return fmt::format("http://127.0.0.1:{}", *port);
}

}  // namespace

Result<std::vector<VariantServer>> ListVariants(const BenchOptions& options) {
  std::vector<VariantServer> servers;
  if (!options.model.empty()) {
    if (Status status = AddOutriders(options, &servers); !status.ok()) return status;
    if (Status status = AddOthers(options, &servers); !status.ok()) return status;
  } else if (!options.variants.empty() || !options.draft.empty() || !options.against.empty()) {
    return InvalidArgument("which model? -m FILE.gguf (-md, --variant and --against start servers with it)");
  }
  AddRunning(options, &servers);
  if (servers.empty())
    return InvalidArgument("there is nothing to measure: give -m FILE.gguf or --url http://host:port");
  std::set<std::string> names;
  for (const VariantServer& server : servers) {
    if (!names.insert(server.name).second) return InvalidArgument("two variants are called '" + server.name + "'");
  }
  return servers;
}

Status StartVariant(VariantServer& server, const BenchOptions& options, const std::string& folder,
                    const std::atomic<bool>& stop) {
  std::string url = server.url;
  if (!server.command.empty()) {
    auto started = StartProcess(server, folder);
    if (!started.ok()) return started.status();
    url = std::move(*started);
  }
  auto endpoint = Endpoint::Create(url, options.api_key, &stop);
  if (!endpoint.ok()) return endpoint.status();
  server.endpoint = std::move(*endpoint);
  if (!server.process) return server.endpoint->WaitUntilReady(Duration::zero());
  const TimePoint deadline = Clock::Real().Now() + kLoadTimeout;
  for (;;) {
    const Status status = server.endpoint->WaitUntilReady(kPollInterval);
    if (status.ok() || stop || Clock::Real().Now() >= deadline) return status;
    if (!server.process->Running()) {
      return InvalidArgument(
          fmt::format("'{}' ended instead of serving:\n{}", server.name, server.process->LastOutput()));
    }
  }
}

}  // namespace outrider
