// DryBreakers: in which sequences of tokens DRY's sequence breakers can appear. A breaker need not be a token: it may
// be a part of one, or end in the middle of another.
//
// libllama has the same search, but writes every token of the vocabulary as text again for each breaker, which takes
// 30 ms for 49,000 tokens. Here the texts are written once, when they are needed for the first time. Thread-safe.
#pragma once

#include <llama.h>

#include <mutex>
#include <string>
#include <vector>

namespace outrider {

class DryBreakers {
 public:
  explicit DryBreakers(const llama_vocab* vocab) : vocab_(vocab) {}

  // Sequences of a token and those that must follow it, for any of `breakers`. Long breakers are cut as libllama does.
  std::vector<std::vector<llama_token>> Find(const std::vector<std::string>& breakers);

 private:
  void WriteTexts();
  void FindOne(const std::string& breaker, std::vector<std::vector<llama_token>>* sequences) const;
  std::vector<llama_token> Tokenize(const std::string& text) const;

  const llama_vocab* const vocab_;
  std::once_flag texts_written_;
  std::vector<std::string> texts_;  // of each token
};

}  // namespace outrider
