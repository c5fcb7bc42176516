// Micro benchmarks (google-benchmark): what is done besides the model in each step. build/release/bin/micro --help
// lists how to choose.
//
// Drafters work on pseudo-text: fresh words, then a copy of something earlier with a word changed here and there, and
// so on. No model is needed; drafters that need one are left out.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "api/answer_fields.h"
#include "drafters/registry.h"
#include "engine/fake_tokenizer.h"
#include "engine/llama/llama_filters.h"
#include "engine/step_split.h"
#include "sampling/sampler.h"
#include "spec/policy.h"
#include "spec/verify.h"

namespace outrider {
namespace {

std::vector<Token> PseudoText(size_t length) {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  std::vector<Token> text;
  while (text.size() < length) {
    const size_t fresh = 8 + below(64);
    for (size_t i = 0; i < fresh; ++i) text.push_back(static_cast<Token>(below(256)));
    const size_t copied = std::min(text.size(), 16 + below(256));
    for (size_t from = below(text.size() - copied + 1), end = from + copied; from < end; ++from) {
      text.push_back(below(64) == 0 ? static_cast<Token>(below(256)) : text[from]);
    }
  }
  text.resize(length);
  return text;
}

// A step of a drafter that looks things up: it is told the last token and asked for the next ones.
void ProposeAndCommit(benchmark::State& state, const std::string& name) {
  const auto length = static_cast<size_t>(state.range(0));
  constexpr size_t kSteps = 4096;
  const std::vector<Token> text = PseudoText(length + kSteps);
  const FakeTokenizer tokenizer;
  const DrafterEnvironment environment{1, tokenizer};
  auto drafter = MakeDrafter({name, {}}, environment);
  if (!drafter.ok()) return state.SkipWithError(drafter.status().message().c_str());
  size_t at = length;
  (*drafter)->Begin(0, std::span(text).first(at), {});
  for (auto _ : state) {
    if (at == text.size()) {
      state.PauseTiming();
      (*drafter)->End(0, text, false);
      at = length;
      (*drafter)->Begin(0, std::span(text).first(at), {});
      state.ResumeTiming();
    }
    ++at;
    (*drafter)->Commit(0, {std::span(text).first(at), 1});
    Proposal proposal;
    proposal.seq = 0;
    proposal.history = std::span(text).first(at);
    proposal.max_tokens = 16;
    Proposal* proposals[] = {&proposal};
    (*drafter)->Propose(proposals);
    benchmark::DoNotOptimize(proposal.draft.tokens.data());
  }
}

void Verify(benchmark::State& state) {
  std::vector<DraftToken> draft(static_cast<size_t>(state.range(0)), DraftToken{7, 0.9f});
  for (auto _ : state) {
    benchmark::DoNotOptimize(WalkDraft(
        draft, [](int) { return Token{7}; }, [](int, Token) { return true; }));
  }
}

void ChooseRows(benchmark::State& state) {
  const auto sequences = static_cast<size_t>(state.range(0));
  const CostCurve curve({{1, 0.020}, {2, 0.021}, {4, 0.024}, {8, 0.033}, {32, 0.110}});
  const RollbackCost rollback;
  StepSplit split(512, false, 0);
  Policy policy(curve, rollback, [&split](std::span<const SequenceRows> step, StepLayout* layout) {
    layout->parts.clear();
    for (const StepSplit::Part& part : split.Cut(step)) layout->parts.push_back(RowsOf(part));
  });
  std::vector<double> survival;
  for (double chance = 0.8; survival.size() < 16; chance *= 0.8) survival.push_back(chance);
  std::vector<SequenceOutlook> outlooks;
  for (size_t i = 0; i < sequences; ++i) outlooks.push_back({static_cast<SeqId>(i), 1, survival});
  StepOutlook step;
  step.sequences = outlooks;
  step.context = 500;
  std::vector<int> rows(sequences);
  for (auto _ : state) {
    policy.ChooseRows(step, 64, rows);
    benchmark::DoNotOptimize(rows.data());
  }
}

// One row of logits. Chains as chats use them: greedy, or top-k, top-p, min-p at 0.8.
void Draw(benchmark::State& state, float temperature) {
  std::vector<float> logits(static_cast<size_t>(state.range(0)));
  std::mt19937 random(1);
  for (float& logit : logits) logit = std::normal_distribution<float>(0, 3)(random);
  SamplingOptions options;
  options.temperature = temperature;
  options.seed = 1;
  LlamaFilterFactory filters(nullptr, 4096);
  auto sampler = Sampler::Create(options, {}, filters);
  if (!sampler.ok()) return state.SkipWithError(sampler.status().message().c_str());
  Pos position = 0;
  for (auto _ : state) benchmark::DoNotOptimize((*sampler)->Draw(logits, ++position));
}

void FrameEvent(benchmark::State& state) {
  for (auto _ : state) {
    const Json delta = {
        {"index", 0}, {"delta", {{"content", " token"}}}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
    benchmark::DoNotOptimize(SseEvent("", {{"id", "chatcmpl-0123456789"},
                                           {"object", "chat.completion.chunk"},
                                           {"created", 1794732951},
                                           {"model", "model"},
                                           {"choices", Json::array({delta})}}));
  }
}

BENCHMARK_CAPTURE(ProposeAndCommit, suffix, "suffix")->Arg(1 << 10)->Arg(32 << 10)->Arg(256 << 10);
BENCHMARK_CAPTURE(ProposeAndCommit, ngram_simple, "ngram-simple")->Arg(1 << 10)->Arg(32 << 10)->Arg(256 << 10);
BENCHMARK_CAPTURE(ProposeAndCommit, ngram_map_k, "ngram-map-k")->Arg(1 << 10)->Arg(32 << 10)->Arg(256 << 10);
BENCHMARK_CAPTURE(ProposeAndCommit, ngram_map_k4v, "ngram-map-k4v")->Arg(1 << 10)->Arg(32 << 10)->Arg(256 << 10);
BENCHMARK_CAPTURE(ProposeAndCommit, ngram_mod, "ngram-mod")->Arg(1 << 10)->Arg(32 << 10)->Arg(256 << 10);
BENCHMARK_CAPTURE(ProposeAndCommit, ngram_cache, "ngram-cache")->Arg(1 << 10)->Arg(32 << 10)->Arg(256 << 10);
BENCHMARK(Verify)->Arg(4)->Arg(16);
BENCHMARK(ChooseRows)->Arg(1)->Arg(4)->Arg(16);
BENCHMARK_CAPTURE(Draw, greedy, 0.0f)->Arg(49152)->Arg(151936);
BENCHMARK_CAPTURE(Draw, filtered, 0.8f)->Arg(49152)->Arg(151936);
BENCHMARK(FrameEvent);

}  // namespace
}  // namespace outrider

BENCHMARK_MAIN();
