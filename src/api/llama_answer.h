// The object with which llama.cpp's /completion ends: the answer with the prompt, the settings and the timings. The
// OpenAI endpoints show it as "__verbose" if a request asks for that.
#pragma once

#include <string>
#include <vector>

#include "api/protocol.h"
#include "base/json.h"
#include "scheduler/generation.h"

namespace outrider {

// What a request says beside the generation, as far as its settings show it.
struct LlamaAnswerOptions {
  int index = 0;  // of the choice
  bool stream = false;
  bool timings_per_token = false;
  int n_probs = 0;
};

class LlamaAnswer {
 public:
  LlamaAnswer(const LlamaAnswerOptions& options, const GenerationRequest& request, const ApiContext& context);

  // Call for each chunk.
  void Observe(const Chunk& chunk);

  // After the last chunk. `tokens`: those that are to be listed.
  Json Last(const std::string& content, const std::vector<GeneratedToken>& tokens) const;

  size_t prompt_tokens() const { return prompt_tokens_; }
  const Completion& completion() const { return completion_; }

 private:
  const int index_;
  const Tokenizer& tokenizer_;
  const std::string model_;
  const std::vector<Token> prompt_;  // its text
  const size_t prompt_tokens_;       // pictures included
  const Json settings_;
  bool has_new_line_ = false;
  Completion completion_;
};

Json TokenIds(const std::vector<GeneratedToken>& tokens);

}  // namespace outrider
