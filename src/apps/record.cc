#include "apps/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "apps/bench_plan.h"
#include "apps/costs.h"
#include "apps/machine_cache.h"
#include "apps/model_chat.h"
#include "apps/speculation.h"
#include "apps/target.h"
#include "apps/version.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/llama/backend.h"
#include "engine/llama/llama_filters.h"
#include "scheduler/scheduler.h"
#include "worlds/workload.h"

namespace outrider {
namespace {

constexpr int kMaxLookupTokens = 31, kMaxModelTokens = 16;  // of a recorded draft
constexpr Pos kSequenceLength = 4096;

SamplingOptions SamplingFor(const BenchOptions& options) {
  SamplingOptions sampling;
  sampling.temperature = static_cast<float>(options.temperatures.front());
  sampling.seed = 17;
  return sampling;
}

// The tokens of the target's answer, without drafts.
Result<std::vector<Token>> Answer(Scheduler& scheduler, std::vector<Token> prompt, const BenchOptions& options) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling = SamplingFor(options);
  request.max_tokens = options.tokens;
  auto generation = scheduler.Submit(std::move(request));
  if (!generation.ok()) return generation.status();
  while (scheduler.Step()) {
  }
  std::vector<Token> tokens;
  while (auto chunk = (*generation)->Wait(std::chrono::milliseconds(0))) {
    for (const GeneratedToken& token : chunk->tokens) tokens.push_back(token.token);
    if (!chunk->completion) continue;
    if (!chunk->completion->error.ok()) return chunk->completion->error;
    break;
  }
  return tokens;
}

// What the drafter says after `history`, compared with `next`.
RecordedDraft Shadow(Drafter& drafter, std::span<const Token> history, std::span<const Token> next) {
  if (HistoryReader* reader = drafter.reader()) {
    for (int lag = reader->Lag(0, history); lag > 0; lag = reader->Lag(0, history)) reader->Read(0, history, lag);
  }
  Proposal proposal;
  proposal.seq = 0;
  proposal.history = history;
  proposal.max_tokens = drafter.traits().computes ? kMaxModelTokens : kMaxLookupTokens;
  Proposal* proposals[] = {&proposal};
  drafter.Propose(proposals);
  RecordedDraft draft;
  bool right = true;
  for (size_t i = 0; i < proposal.draft.tokens.size() && i < static_cast<size_t>(proposal.max_tokens); ++i) {
    right = right && i < next.size() && proposal.draft.tokens[i].token == next[i];
    draft.right += right ? 1 : 0;
    draft.confidences.push_back(proposal.draft.tokens[i].confidence);
  }
  return draft;
}

// Goes through an answer token by token, as in decoding without drafts. The first token of the answer counts as a part
// of the prompt, because drafting begins after it.
RecordedAnswer ShadowAnswer(std::vector<std::unique_ptr<Drafter>>& drafters, const std::vector<Token>& prompt,
                            const std::vector<Token>& answer, const BenchOptions& options) {
  RecordedAnswer recorded;
  recorded.prompt_tokens = static_cast<int>(prompt.size()) + 1;
  std::vector<Token> all = prompt;
  all.insert(all.end(), answer.begin(), answer.end());
  const std::span<const Token> tokens = all;
  DraftContext context;
  context.sampling = SamplingFor(options);
  for (auto& drafter : drafters) {
    auto& drafts = recorded.drafts.emplace_back();
    drafter->Begin(0, prompt, context);
    for (size_t length = prompt.size() + 1; length < all.size(); ++length) {
      drafter->Commit(0, {tokens.first(length), 1});
      drafts.push_back(Shadow(*drafter, tokens.first(length), tokens.subspan(length)));
    }
    drafter->Commit(0, {tokens, 1});
    drafter->End(0, tokens, /*complete=*/true);
  }
  return recorded;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Times of steps by context and rows, each the median of several that were taken in turn.
Result<Json> MeasureSteps(Engine& engine, double* noise) {
  constexpr int kRounds = 7;
  Json steps = Json::array();
  for (const Pos context : {64, 512, 2048}) {
    Batch batch;
    engine.TruncateTo(0, 0);
    for (Pos begin = 0; begin < context; begin += 64) {
      batch.Clear();
      for (Pos pos = begin; pos < begin + 64; ++pos) batch.Add({100 + pos % 1000, pos, 0, false});
      if (Status status = engine.Decode(batch); !status.ok()) return status;
    }
    std::map<int, std::vector<double>> times;
    for (int round = 0; round < kRounds; ++round) {
      for (const int rows : {1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24, 32, 48, 64}) {
        if (rows > engine.info().max_outputs) break;
        batch.Clear();
        for (Pos pos = context; pos < context + rows; ++pos) batch.Add({100 + pos % 1000, pos, 0, true});
        const TimePoint start = Clock::Real().Now();
        if (Status status = engine.Decode(batch); !status.ok()) return status;
        times[rows].push_back(Milliseconds(Clock::Real().Now() - start));
        engine.TruncateTo(0, context);
      }
    }
    for (const auto& [rows, all] : times) steps.push_back({rows, context, std::round(Median(all) * 1000) / 1000});
    std::vector<double> deviations;
    for (const double ms : times[1]) deviations.push_back(std::abs(ms / Median(times[1]) - 1));
    *noise = std::max(*noise, 1.5 * Median(deviations));
  }
  return steps;
}

Status RecordMachine(const BenchOptions& options, Target& target, const std::string& path) {
  double noise = 0.02;
  auto steps = MeasureSteps(target.engine(), &noise);
  if (!steps.ok()) return steps.status();
  Json json = {
      {"name", fmt::format("{}, {}", ProcessorName(), std::filesystem::path(options.model).stem().string())},
      {"source", fmt::format("outrider bench --record, {} threads, {}", target.context().threads, VersionLine())},
      {"steps", std::move(*steps)},
      {"noise", std::round(noise * 1000) / 1000}};
  if (!options.draft.empty()) {
    auto costs = MeasureCosts(options.model, options.draft, options.threads, options.gpu_layers);
    if (!costs.ok()) return costs.status();
    json["drafters"]["model"] = {{"token_ms", costs->draft.token_seconds * 1000},
                                 {"read_ms", costs->draft.read_seconds * 1000}};
  }
  return KeepFile(path, json.dump(1) + "\n");
}

}  // namespace

Status RecordWorld(const BenchOptions& options) {
  auto plan = MakeBenchPlan(options);
  if (!plan.ok()) return plan.status();
  if (options.model.empty()) return InvalidArgument("--record needs -m: the model is loaded here");
  if (Status status = InitBackend(""); !status.ok()) return status;
  ModelOptions model;
  model.path = options.model;
  model.gpu_layers = options.gpu_layers;
  ContextOptions context;
  context.n_sequences = 1;
  context.context_tokens = kSequenceLength;
  context.threads = options.threads;
  auto target = Target::Load(model, context);
  if (!target.ok()) return target.status();
  auto chat = ChatTemplateOf(*(*target)->model(), "", Json::object());
  if (!chat.ok()) return chat.status();

  SpeculationSettings settings;
  if (!options.drafters.empty()) settings.drafters = options.drafters;
  settings.draft_model = model;
  settings.draft_model.path = options.draft;
  auto drafters = LoadDrafters(settings, **target);
  if (!drafters.ok()) return drafters.status();

  Workload workload;
  workload.name = std::filesystem::path(options.record).filename().string();
  for (const auto& drafter : drafters->drafters) workload.drafters.push_back(drafter->traits().name);
  const Tokenizer& tokenizer = (*target)->model()->tokenizer();
  LlamaFilterFactory filters((*target)->model(), (*target)->engine().info().sequence_length);
  Scheduler scheduler((*target)->engine(), tokenizer, filters, {});
  int number = 0;
  for (const BenchPrompt& prompt : plan->prompts) {
    ChatInput input;
    input.messages.push_back({{"role", "user"}, {"content", prompt.turns.front()}});
    const auto text = (*chat)->Apply(input);
    if (!text.ok()) return text.status();
    const std::vector<Token> tokens = tokenizer.Tokenize(text->text, /*add_bos=*/true, SpecialTokens::kParse);
    const auto answer = Answer(scheduler, tokens, options);
    if (!answer.ok()) return answer.status();
    fmt::print(stderr, "\r{} of {} prompts recorded ", ++number, plan->prompts.size());
    if (answer->size() < 3) continue;  // nothing to draft
    workload.answers.push_back(ShadowAnswer(drafters->drafters, tokens, *answer, options));
    workload.answers.back().category = prompt.category;
  }
  fmt::print(stderr, "\n");
  if (Status status = KeepFile(options.record + ".workload.jsonl", DumpWorkload(workload)); !status.ok()) return status;
  return RecordMachine(options, **target, options.record + ".machine.json");
}

}  // namespace outrider
