#include "apps/bench.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "apps/contestants.h"
#include "apps/costs.h"
#include "apps/end_signals.h"
#include "apps/machine_cache.h"
#include "apps/version.h"
#include "base/file.h"
#include "base/log.h"
#include "bench/prediction.h"
#include "bench/report.h"
#include "bench/runner.h"
#include "bench/summary.h"
#include "engine/llama/backend.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

Result<std::vector<BenchPrompt>> Prompts(const BenchOptions& options) {
  Result<std::vector<BenchPrompt>> prompts = ParsePrompts(DefaultPrompts());
  if (!options.prompts.empty()) {
    const auto text = ReadFile(options.prompts);
    if (!text) return InvalidArgument("cannot read the prompts in " + options.prompts);
    prompts = ParsePrompts(*text);
    if (!prompts.ok()) return InvalidArgument(options.prompts + ", " + prompts.status().message());
  }
  if (options.count <= 0 || options.count >= static_cast<int>(prompts->size())) return prompts;
  // One of each category, then another of each, ….
  std::map<std::string, std::vector<BenchPrompt>> by_category;
  for (BenchPrompt& prompt : *prompts) by_category[prompt.category].push_back(std::move(prompt));
  std::vector<BenchPrompt> chosen;
  for (size_t round = 0; static_cast<int>(chosen.size()) < options.count; ++round) {
    for (auto& [category, members] : by_category) {
      if (round < members.size() && static_cast<int>(chosen.size()) < options.count) {
        chosen.push_back(std::move(members[round]));
      }
    }
  }
  return chosen;
}

// "2k" is 2048.
Result<int> ParseTokens(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc() || value < 0 || value > (1 << 20) || !(unit.empty() || unit == "k" || unit == "K")) {
    return InvalidArgument("--context takes numbers of tokens like 0,2k,8k, not '" + text + "'");
  }
  if (!unit.empty()) value *= 1024;
  if (value > MostDepth()) {
    return InvalidArgument(fmt::format("--context {}: there are {} tokens of prose at most", text, MostDepth()));
  }
  return value;
}

// What has been done, on one line of a terminal, or a line now and then elsewhere.
class Progress {
 public:
  explicit Progress(size_t total) : total_(total), start_(Clock::Real().Now()) {}

  void Add(const BenchRecord& record) {
    ++done_;
    const double passed = Milliseconds(Clock::Real().Now() - start_) / 1000;
    const double left = passed / static_cast<double>(done_) * static_cast<double>(total_ - done_);
    const std::string line = fmt::format("{} of {} answers, {} left, {}: {:.1f} t/s", done_, total_, Span(left),
                                         record.variant, record.answer.TokensPerSecond());
    if (terminal_) {
      constexpr size_t kBar = 20;
      const size_t full = kBar * done_ / std::max<size_t>(total_, 1);
      fmt::print(stderr, "\r\033[K[{}{}] {}", std::string(full, '#'), std::string(kBar - full, ' '), line);
      std::fflush(stderr);
    } else if (done_ * 20 / total_ != (done_ - 1) * 20 / total_) {
      fmt::print(stderr, "{}\n", line);
    }
  }

  void End() const {
    if (terminal_ && done_ > 0) fmt::print(stderr, "\r\033[K");
  }

 private:
  static std::string Span(double seconds) {
    if (seconds < 90) return fmt::format("{:.0f} s", seconds);
    return fmt::format("{:.0f} min", seconds / 60);
  }

  const size_t total_;
  const TimePoint start_;
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  size_t done_ = 0;
};

// As it was typed, but for secrets.
std::string CommandLine() {
  const std::string line = ReadFile("/proc/self/cmdline").value_or("");
  std::string typed;
  bool secret = false;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find('\0', begin), line.size());
    std::string word = line.substr(begin, end - begin);
    begin = end + 1;
    if (typed.empty()) word = fs::path(word).filename();
    if (std::exchange(secret, word == "--api-key")) word = "...";
    if (const size_t key = word.find("--api-key="); key != word.npos) word = word.substr(0, key) + "--api-key=...";
    if (word.find("--api-key ") != word.npos) word = "...";
    if (word.empty() || word.find_first_of(" \t\"'$&|;<>*?()#!`\\") != word.npos) {
      for (size_t at = 0; (at = word.find('\'', at)) != word.npos; at += 4) word.replace(at, 1, "'\\''");
      word = "'" + word + "'";
    }
    typed += (typed.empty() ? "" : " ") + word;
  }
  return typed;
}

// Where a variant's text first differs, and how near a thing that was for the first variant.
std::string Explain(const BenchPlan& plan, const std::vector<BenchRecord>& records, const BenchVariantSummary& variant,
                    Endpoint& first) {
  const BenchDifference& difference = variant.differences.front();
  const std::string first_name = plan.variants.front().name;
  std::vector<std::string> answers;  // of the turns before
  std::string text, other;
  for (const BenchRecord& record : records) {
    BenchQuestion turn = record.question;
    const bool is_first = record.variant == first_name;
    if (!record.error.empty() || !(is_first || record.variant == variant.name)) continue;
    if (record.question == difference.question) (is_first ? text : other) = record.answer.text;
    turn.turn = difference.question.turn;
    if (is_first && turn == difference.question && record.question.turn < turn.turn)
      answers.push_back(record.answer.text);
  }
  std::string sentence =
      fmt::format("First in prompt {} after {} bytes: {} says {}, {} says {}.", difference.question.prompt + 1,
                  difference.position, first_name, DumpJson(text.substr(difference.position, 24)), variant.name,
                  DumpJson(other.substr(difference.position, 24)));
  if (difference.question.temperature > 0) return sentence;  // what was drawn, chances alone do not decide
  const auto tokens = first.AskChances(RequestFor(plan, difference.question, answers));
  if (!tokens.ok()) return sentence;
  size_t at = 0;
  for (const TokenChances& token : *tokens) {
    if (at + token.text.size() > difference.position) {
      return sentence + fmt::format(" Token {} against {}: the two best logits are {:.4f} apart.", DumpJson(token.text),
                                    DumpJson(token.runner_up), token.gap);
    }
    at += token.text.size();
  }
  return sentence;
}

// The page, and the table on the terminal.
Status WriteReport(const std::string& folder, const BenchHeading& heading, const std::vector<BenchRecord>& records,
                   const BenchSummary& summary) {
  fmt::print("{}", SummaryTable(summary));
  for (const auto& [name, bytes] : heading.peak_bytes)
    fmt::print("{}: {:.0f} MB of memory at most\n", name, bytes / 1e6);
  for (const BenchPrediction& each : heading.predictions) {
    fmt::print("{}: over all answers {:.2f}x, and {:.2f}x by what steps were measured to cost (outrider plan)\n",
               each.variant, each.measured, each.predicted);
  }
  for (const auto& [name, sentence] : heading.explained) fmt::print("{}: {}\n", name, sentence);
  const std::string path = folder + "/report.html";
  std::ofstream page(path);
  page << ReportPage(ReportJson(heading, records, summary)) << std::flush;
  if (!page) return Internal("could not write " + path + ": is the disk full?");
  fmt::print("\n{} has the pictures, {}/results.jsonl all answers.\n", path, folder);
  return {};
}

Status MakeFolder(std::string* folder) {
  if (folder->empty()) *folder = fmt::format("bench-{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
  std::error_code error;
  fs::create_directories(*folder, error);
  if (error) return InvalidArgument(fmt::format("cannot make the folder {}: {}", *folder, error.message()));
  return {};
}

// The report of a bench that was.
Status ReportAgain(const BenchOptions& options, bool* complete) {
  const auto text = ReadFile(options.from);
  if (!text) return InvalidArgument("cannot read " + options.from);
  BenchHeading heading;
  const auto records = ParseRecords(*text, &heading);
  if (!records.ok()) return InvalidArgument(options.from + ", " + records.status().message());
  std::string folder = options.out;
  if (Status status = MakeFolder(&folder); !status.ok()) return status;
  const Status status = WriteReport(folder, heading, *records, SummariseRecords(*records));
  *complete = status.ok();
  return status;
}

}  // namespace

void AddBenchFlags(Flags& flags, BenchOptions& o) {
  flags.Group("What is measured");
  flags.Add("-m,--model", o.model, "GGUF file: servers are started with it, one without drafts and one with");
  flags.Add("-md,--model-draft", o.draft, "GGUF file of a draft model: one more, that has it");
  flags.Add("--spec", o.drafters, "drafters of the speculative one instead of auto; may be repeated, as for serve");
  flags.Add("--variant", o.variants, "one more Outrider: NAME=FLAGS of outrider serve; may be repeated");
  flags.Add("--against", o.against,
            "another server, started with the same model: llama-server=PROGRAM; may be repeated");
  flags.Add("--url", o.urls, "a server that runs already: [NAME=]http://host:port/v1; may be repeated");
  flags.Add("--api-key", o.api_key, "key for those");
  flags.Add("-t,--threads", o.threads, "threads of the servers that are started; 0 = what they choose")
      ->check(CLI::Range(0, 4096));
  flags.Add("-ngl,--gpu-layers,--n-gpu-layers", o.gpu_layers, "their layers on the devices; -1 = what they choose")
      ->check(CLI::Range(-1, 1 << 20));
  flags.Add("--flags", o.flags, "more flags of outrider serve, for all Outriders that are started");

  flags.Group("How");
  flags.Add("--prompts", o.prompts,
            "file with lines {\"category\": …, \"turns\": [\"…\"]} instead of the 51 that come along");
  flags.Add("--count", o.count, "how many of them, spread over the categories; 0 = all")->check(CLI::NonNegativeNumber);
  flags.Add("--runs", o.runs, "times everything is asked")->check(CLI::Range(1, 1000));
  flags.Add("-n,--tokens", o.tokens, "tokens of an answer at most")->check(CLI::Range(2, 1 << 20));
  flags.Add("--temp", o.temperatures, "temperatures, comma-separated")->delimiter(',')->check(CLI::Range(0.0, 10.0));
  flags.Add("--concurrency", o.concurrency, "requests at a time, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  flags.Add("--context", o.contexts, "tokens of prose before each prompt, comma-separated: 0,2k,8k")->delimiter(',');
  flags.Add("--from", o.from, "results.jsonl of an earlier bench: makes its report again, and asks nobody");
  flags.Add("--out", o.out, "folder for results.jsonl, report.html and logs; default: bench-DATE-TIME");
}

Status Bench(const BenchOptions& options, bool* complete) {
  SetLogLevel(LogLevel::kWarning);
  if (!options.from.empty()) return ReportAgain(options, complete);
  static std::atomic<bool> stop = false;
  static EndSignals signals([](int signal, int count) {
    if (count > 1) std::_Exit(128 + signal);
    stop = true;
  });
  BenchPlan plan;
  plan.runs = options.runs;
  plan.temperatures = options.temperatures;
  plan.concurrencies = options.concurrency;
  plan.max_tokens = options.tokens;
  plan.contexts.clear();
  for (const std::string& text : options.contexts) {
    const auto tokens = ParseTokens(text);
    if (!tokens.ok()) return tokens.status();
    plan.contexts.push_back(*tokens);
  }
  auto prompts = Prompts(options);
  if (!prompts.ok()) return prompts.status();
  plan.prompts = std::move(*prompts);
  auto contestants = Contestants(options);
  if (!contestants.ok()) return contestants.status();
  if (*std::max_element(plan.concurrencies.begin(), plan.concurrencies.end()) > static_cast<int>(plan.prompts.size())) {
    return InvalidArgument(fmt::format("there are only {} prompts to ask at a time", plan.prompts.size()));
  }
  std::string folder = options.out;
  if (Status status = MakeFolder(&folder); !status.ok()) return status;

  std::optional<MeasuredCosts> costs;
  if (!options.model.empty()) {
    fmt::print(stderr, "measuring what steps cost …\n");
    if (Status status = InitBackend(""); !status.ok()) return status;
    auto measured = MeasureCosts(options.model, options.draft, options.threads, options.gpu_layers);
    if (!measured.ok()) return measured.status();
    costs = std::move(*measured);
  }
  const auto stopped = [&] {
    if (stop) fmt::print(stderr, "Stopped before anything was measured.\n");
    return stop.load();
  };
  for (Contestant& contestant : *contestants) {
    if (stopped()) return {};
    fmt::print(stderr, "{} '{}' …\n", contestant.command.empty() ? "reaching" : "starting", contestant.name);
    if (Status status = StartContestant(contestant, options, folder, stop); !status.ok() && !stop) return status;
    plan.variants.push_back({contestant.name, contestant.endpoint.get()});
  }
  if (stopped()) return {};
  if (Status status = WarmUp(plan); !status.ok() && !stop) return status;
  if (stopped()) return {};

  BenchHeading heading = {"Outrider bench", fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr))),
                          ProcessorName(), VersionLine(), CommandLine()};
  if (!options.model.empty()) heading.title += ": " + fs::path(options.model).filename().string();
  const std::string results_path = folder + "/results.jsonl";
  std::ofstream results(results_path);
  results << DumpJson(HeadingJson(heading)) << '\n';
  std::vector<BenchRecord> records;
  Progress progress(plan.Requests());
  EnergyMeter energy;
  Status status = RunBench(
      plan, energy,
      [&](BenchRecord record) {
        results << DumpJson(RecordJson(record)) << '\n' << std::flush;
        progress.Add(record);
        if (!record.error.empty()) fmt::print(stderr, "\n{}: {}\n", record.variant, record.error);
        records.push_back(std::move(record));
      },
      stop);
  progress.End();

  std::vector<std::string> ours;
  for (const Contestant& contestant : *contestants) {
    if (!contestant.process) continue;
    heading.peak_bytes[contestant.name] = contestant.process->PeakBytes();
    if (contestant.command[1] == "serve") ours.push_back(contestant.name);
  }
  const BenchSummary summary = SummariseRecords(records);
  for (const BenchVariantSummary& variant : summary.variants) {
    if (variant.differences.empty() || stop) continue;
    heading.explained[variant.name] = Explain(plan, records, variant, *plan.variants.front().endpoint);
  }
  if (costs) heading.predictions = PredictRecords(records, ours, costs->curve, costs->draft);
  results << DumpJson(HeadingJson(heading)) << '\n' << std::flush;
  if (!results && status.ok()) status = Internal("could not write all of " + results_path + ": is the disk full?");
  const Status kept = WriteReport(folder, heading, records, summary);
  if (status.ok()) status = kept;
  if (stop) fmt::print(stderr, "Stopped early: {} of {} answers.\n", records.size(), plan.Requests());
  const bool failures = std::any_of(records.begin(), records.end(), [](const auto& r) { return !r.error.empty(); });
  *complete = status.ok() && !failures && !stop;
  return status;
}

}  // namespace outrider
