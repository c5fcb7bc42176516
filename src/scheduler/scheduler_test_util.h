// What tests of the scheduler's parts need: a small engine, and requests in slots without a scheduler around them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "sampling/fake_filters.h"
#include "scheduler/slot_pool.h"

namespace outrider {

inline EngineInfo SmallEngine(int n_sequences = 2, Pos sequence_length = 200) {
  EngineInfo info;
  info.n_vocab = 258;
  info.n_sequences = n_sequences;
  info.sequence_length = sequence_length;
  info.max_batch = 64;
  info.micro_batch = 32;
  info.max_outputs = 32;
  return info;
}

inline std::vector<Token> Tokens(const std::string& text) {
  return FakeTokenizer().Tokenize(text, false, SpecialTokens::kAsText);
}

inline GenerationRequest Request(const std::string& prompt, int max_tokens = -1) {
  GenerationRequest request;
  request.prompt = Tokens(prompt);
  request.sampling.temperature = 0;
  request.max_tokens = max_tokens;
  return request;
}

inline PendingRequest Pending(GenerationRequest request, TimePoint submitted = {}) {
  FakeFilterFactory filters;
  auto sampler = Sampler::Create(request.sampling, request.prompt, filters);
  return {std::make_shared<Generation>(std::move(request)), std::move(*sampler), submitted};
}

// Reads the tokens of the sequence that are not in memory yet, as steps would.
inline void Read(Engine& engine, const Sequence& sequence) {
  const auto end = static_cast<Pos>(sequence.tokens.size());
  while (engine.Length(sequence.id) < end) {
    Batch batch;
    for (Pos pos = engine.Length(sequence.id); pos < end && batch.size() < engine.info().max_batch; ++pos) {
      batch.Add({sequence.tokens[static_cast<size_t>(pos)], pos, sequence.id, false});
    }
    EXPECT_TRUE(engine.Decode(batch).ok());
  }
}

// Makes the sequence look as if its first token had just been generated from its prompt, which is in memory.
inline void BeginAnswer(Engine& engine, Sequence& sequence, Token token) {
  Read(engine, sequence);
  sequence.tokens.push_back(token);
  sequence.timings.generated_tokens = 1;
}

}  // namespace outrider
