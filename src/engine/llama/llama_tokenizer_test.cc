#include "engine/llama/llama_tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "engine/llama/llama_model.h"

namespace outrider {
namespace {

std::shared_ptr<LlamaModel> LoadModel() {
  ModelOptions options;
  options.path = std::string(OUTRIDER_MODELS_DIR) + "/smollm2-draft-16m.gguf";
  auto model = LlamaModel::Load(options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

std::vector<Token> Direct(const llama_vocab* vocab, const std::string& text, bool add_bos, bool parse_special) {
  std::vector<Token> tokens(text.size() + 8);
  tokens.resize(static_cast<size_t>(llama_tokenize(vocab, text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                                                   static_cast<int32_t>(tokens.size()), add_bos, parse_special)));
  return tokens;
}

// Long texts are tokenised in pieces, which nobody may notice.
TEST(LlamaTokenizerTest, PiecesGiveTheTokensOfTheWhole) {
  const auto model = LoadModel();
  ASSERT_NE(model, nullptr);
  const LlamaTokenizer& tokenizer = model->tokenizer();
  const std::string parts[] = {
      "<|im_start|>", "<|im_end|>",    "<|endoftext|>", "<|im_", "end|>",  " the sea",    "\n",
      "   ",          "Z\xC3\xBCrich", "1234,",         "<",     "user\n", "<repo_name>", "<file_sep>",
      "'s",           "<|im_end"};
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    std::string text;
    for (unsigned k = random() % 2000; k > 0; --k) text += parts[random() % std::size(parts)];
    for (const bool add_bos : {false, true}) {
      for (const SpecialTokens special : {SpecialTokens::kParse, SpecialTokens::kAsText}) {
        EXPECT_EQ(tokenizer.Tokenize(text, add_bos, special),
                  Direct(tokenizer.vocab(), text, add_bos, special == SpecialTokens::kParse));
      }
    }
  }
}

TEST(LlamaTokenizerTest, NoTokenStandsForMoreThanItSays) {
  const auto model = LoadModel();
  ASSERT_NE(model, nullptr);
  const LlamaTokenizer& tokenizer = model->tokenizer();
  ASSERT_GT(tokenizer.max_token_bytes(), 0u);
  for (Token token = 0; token < tokenizer.vocabulary_size(); ++token) {
    ASSERT_LE(tokenizer.Piece(token, /*show_special=*/true).size(), tokenizer.max_token_bytes()) << token;
  }
}

}  // namespace
}  // namespace outrider
