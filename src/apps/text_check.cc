#include "apps/text_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "apps/check_texts.h"
#include "scheduler/scheduler.h"

namespace outrider {
namespace {

constexpr int kMaxTokens = 96;

GenerationRequest RequestFor(const char* text, const Tokenizer& tokenizer, Pos sequence_length, float temperature) {
  GenerationRequest request;
  request.prompt = tokenizer.Tokenize(text, /*add_bos=*/true, SpecialTokens::kAsText);
  request.sampling.temperature = temperature;
  request.sampling.seed = 17;
  request.ignore_eos = true;
  request.reuse_prefix = false;
  request.max_tokens = std::min(kMaxTokens, sequence_length - static_cast<Pos>(request.prompt.size()));
  return request;
}

// Takes what a finished generation produced.
Status Collect(Generation& generation, Continuations* texts) {
  auto& tokens = texts->tokens.emplace_back();
  while (auto chunk = generation.Wait(std::chrono::milliseconds(0))) {
    for (const GeneratedToken& token : chunk->tokens) tokens.push_back(token.token);
    if (!chunk->completion) continue;
    texts->drafted += chunk->completion->timings.drafted_tokens;
    texts->accepted += chunk->completion->timings.accepted_tokens;
    return chunk->completion->error;
  }
  return {};
}

}  // namespace

Result<Continuations> ContinueTexts(Engine& engine, const Tokenizer& tokenizer, FilterFactory& filters,
                                    std::unique_ptr<Speculator> speculator, float temperature,
                                    const AdapterSet& adapters) {
  Scheduler scheduler(engine, tokenizer, filters, {}, std::move(speculator));
  std::vector<std::shared_ptr<Generation>> generations;
  for (const char* text : kCheckTexts) {
    GenerationRequest request = RequestFor(text, tokenizer, engine.info().sequence_length, temperature);
    request.adapters = adapters;
    auto generation = scheduler.Submit(std::move(request));
    if (!generation.ok()) return generation.status();
    generations.push_back(*generation);
  }
  while (scheduler.Step()) {
  }
  Continuations texts;
  for (auto& generation : generations) {
    if (Status status = Collect(*generation, &texts); !status.ok()) return status;
  }
  return texts;
}

std::string FirstDifference(const Continuations& plain, const Continuations& drafted) {
  for (size_t i = 0; i < plain.tokens.size(); ++i) {
    if (i >= drafted.tokens.size()) return fmt::format("text {} was not answered", i + 1);
    const auto& a = plain.tokens[i];
    const auto& b = drafted.tokens[i];
    const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
    if (a.size() != b.size() || at != static_cast<std::ptrdiff_t>(a.size())) {
      return fmt::format("text {} differs from token {} on", i + 1, at);
    }
  }
  return "";
}

}  // namespace outrider
