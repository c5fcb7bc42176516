#include "apps/contestants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <set>
#include <utility>

#include "base/clock.h"

namespace outrider {
namespace {

constexpr auto kLoading = std::chrono::minutes(20);
constexpr auto kLook = std::chrono::milliseconds(500);

std::pair<std::string, std::string> SplitName(const std::string& text) {
  const size_t at = text.find('=');
  return at == text.npos ? std::pair(text, text) : std::pair(text.substr(0, at), text.substr(at + 1));
}

}  // namespace

Result<std::vector<Contestant>> Contestants(const BenchOptions& options) {
  std::vector<Contestant> all;
  std::vector<std::string> machine;
  if (options.threads > 0) machine.insert(machine.end(), {"-t", std::to_string(options.threads)});
  if (options.gpu_layers >= 0) machine.insert(machine.end(), {"-ngl", std::to_string(options.gpu_layers)});
  const int most = *std::max_element(options.concurrency.begin(), options.concurrency.end());
  machine.insert(machine.end(), {"-np", std::to_string(most)});
  const auto common = SplitWords(options.flags);
  if (!common.ok()) return common.status();

  const auto add = [&](const std::string& name, const std::vector<std::string>& flags) {
    Contestant contestant;
    contestant.name = name;
    contestant.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "serve", "-m", options.model,
                          "--spec-forget"};
    contestant.command.insert(contestant.command.end(), machine.begin(), machine.end());
    contestant.command.insert(contestant.command.end(), common->begin(), common->end());
    contestant.command.insert(contestant.command.end(), flags.begin(), flags.end());
    all.push_back(std::move(contestant));
  };
  if (!options.model.empty()) {
    add("plain", {"--spec", "none"});
    std::vector<std::string> chosen;
    for (const std::string& drafter : options.drafters) chosen.insert(chosen.end(), {"--spec", drafter});
    const bool only_auto = options.drafters.empty();
    if (only_auto) add("auto", {"--spec", "auto"});
    if (!options.draft.empty()) chosen.insert(chosen.end(), {"-md", options.draft});
    if (!chosen.empty()) add(only_auto ? "auto + draft" : "speculative", chosen);
    for (const std::string& variant : options.variants) {
      const auto [name, line] = SplitName(variant);
      const auto flags = SplitWords(line);
      if (!flags.ok()) return flags.status();
      if (name == variant) return InvalidArgument("--variant needs NAME=FLAGS, not '" + variant + "'");
      add(name, *flags);
    }
  } else if (!options.variants.empty() || !options.draft.empty() || !options.against.empty()) {
    return InvalidArgument("which model? -m FILE.gguf (-md, --variant and --against start servers with it)");
  }
  for (const std::string& against : options.against) {
    const auto [name, line] = SplitName(against);
    auto command = SplitWords(line);
    if (!command.ok()) return command.status();
    if (command->empty() || name == against) {
      return InvalidArgument("--against needs llama-server=PROGRAM, not '" + against + "'");
    }
    command->insert(command->end(), {"-m", options.model});
    command->insert(command->end(), machine.begin(), machine.end());
    Contestant plain;
    plain.name = name;
    plain.command = *command;
    all.push_back(std::move(plain));
    if (options.draft.empty()) continue;
    Contestant drafting;
    drafting.name = name + " + draft";
    drafting.command = *command;
    drafting.command.insert(drafting.command.end(), {"-md", options.draft, "--spec-type", "draft-simple"});
    all.push_back(std::move(drafting));
  }
  for (const std::string& url : options.urls) {
    Contestant contestant;
    const bool named = url.find('=') < url.find(':');
    contestant.name = named ? SplitName(url).first : url;
    contestant.url = named ? SplitName(url).second : url;
    all.push_back(std::move(contestant));
  }
  if (all.empty()) return InvalidArgument("what shall be measured? -m FILE.gguf, or --url http://host:port");
  std::set<std::string> names;
  for (const Contestant& contestant : all) {
    if (!names.insert(contestant.name).second)
      return InvalidArgument("two variants are called '" + contestant.name + "'");
  }
  return all;
}

Status StartContestant(Contestant& contestant, const BenchOptions& options, const std::string& folder,
                       const std::atomic<bool>& stop) {
  std::string url = contestant.url;
  if (!contestant.command.empty()) {
    const auto port = FreePort();
    if (!port.ok()) return port.status();
    std::vector<std::string> command = contestant.command;
    command.insert(command.end(), {"--host", "127.0.0.1", "--port", std::to_string(*port)});
    std::string file = contestant.name;
    std::replace_if(
        file.begin(), file.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
    auto process = ChildProcess::Start(command, folder + "/" + file + ".log");
    if (!process.ok()) return process.status();
    contestant.process = std::move(*process);
    url = fmt::format("http://127.0.0.1:{}", *port);
  }
  auto endpoint = Endpoint::Create(url, options.api_key, &stop);
  if (!endpoint.ok()) return endpoint.status();
  contestant.endpoint = std::move(*endpoint);
  if (!contestant.process) return contestant.endpoint->WaitUntilReady(Duration::zero());
  const TimePoint deadline = Clock::Real().Now() + kLoading;
  for (;;) {
    const Status status = contestant.endpoint->WaitUntilReady(kLook);
    if (status.ok() || stop || Clock::Real().Now() >= deadline) return status;
    if (!contestant.process->Running()) {
      return InvalidArgument(
          fmt::format("'{}' ended instead of serving:\n{}", contestant.name, contestant.process->Complaint()));
    }
  }
}

}  // namespace outrider
