#include <gtest/gtest.h>

#include "api/api_test_util.h"
#include "api/prepare.h"

namespace outrider {
namespace {

class PlainParser : public ChatParser {
 public:
  explicit PlainParser(bool plain) : plain_(plain) {}
  ChatMessage Parse(const std::string& text, bool) const override { return {text, "", {}}; }
  bool plain() const override { return plain_; }

 private:
  bool plain_;
};

class FixedTemplate : public ChatTemplate {
 public:
  Result<ChatPrompt> Apply(const ChatInput&) const override { return prompt; }
  const std::string& source() const override { return prompt.text; }
  ChatPrompt prompt;
};

// Knows "<t>" as control token 256 besides the bytes.
class MarkTokenizer : public FakeTokenizer {
 public:
  std::vector<Token> Tokenize(std::string_view text, bool add_bos, SpecialTokens special) const override {
    if (text == "<t>" && !add_bos) return {kBos};
    return FakeTokenizer::Tokenize(text, add_bos, special);
  }
};

GenerationRequest Prepare(const ChatPrompt& prompt) {
  const MarkTokenizer tokenizer;
  FixedTemplate chat;
  chat.prompt = prompt;
  const ApiContext context{tokenizer, chat, "m", 0, 100, 1, {}, -1};
  GenerationRequest request;
  request.stop = {"mine"};
  EXPECT_TRUE(PrepareChat({}, context, &request).ok());
  return request;
}

ChatPrompt MakePrompt(bool plain) {
  ChatPrompt prompt;
  prompt.text = "x";
  prompt.parser = std::make_shared<PlainParser>(plain);
  return prompt;
}

TEST(PrepareChatTest, PromptBeginsWithBosOnce) {
  ChatPrompt prompt = MakePrompt(true);
  EXPECT_EQ(Prepare(prompt).prompt, (std::vector<Token>{256, 'x'}));
  prompt.text = "<bos>x";
  EXPECT_EQ(Prepare(prompt).prompt, (std::vector<Token>{'<', 'b', 'o', 's', '>', 'x'}));
}

TEST(PrepareChatTest, StopStringsOfTheTemplateAreAdded) {
  ChatPrompt prompt = MakePrompt(true);
  prompt.stop = {"theirs"};
  EXPECT_EQ(Prepare(prompt).stop, (std::vector<std::string>{"mine", "theirs"}));
}

TEST(PrepareChatTest, TriggersBecomeTokensAndPatterns) {
  ChatPrompt prompt = MakePrompt(false);
  prompt.grammar = "root ::= \"x\"";
  prompt.grammar_lazy = true;
  prompt.grammar_prefill = "p";
  prompt.preserved = {"<t>"};
  prompt.triggers = {{GrammarTrigger::Kind::kWord, "<t>"},        {GrammarTrigger::Kind::kWord, "a.b(c)"},
                     {GrammarTrigger::Kind::kPattern, "x+"},      {GrammarTrigger::Kind::kFullPattern, "y"},
                     {GrammarTrigger::Kind::kFullPattern, "^z$"}, {GrammarTrigger::Kind::kFullPattern, ""}};
  const GrammarOptions grammar = Prepare(prompt).sampling.grammar;
  EXPECT_EQ(grammar.text, prompt.grammar);
  EXPECT_TRUE(grammar.lazy);
  EXPECT_EQ(grammar.prefill, "p");
  EXPECT_EQ(grammar.trigger_tokens, (std::vector<Token>{256}));
  EXPECT_EQ(grammar.trigger_patterns, (std::vector<std::string>{"a\\.b\\(c\\)", "x+", "^y$", "^z$", "^$"}));
}

TEST(PrepareChatTest, WordsThatAreNotPreservedStayPatterns) {
  ChatPrompt prompt = MakePrompt(false);
  prompt.grammar = "root ::= \"x\"";
  prompt.triggers = {{GrammarTrigger::Kind::kWord, "<t>"}};
  const GrammarOptions grammar = Prepare(prompt).sampling.grammar;
  EXPECT_TRUE(grammar.trigger_tokens.empty());
  EXPECT_EQ(grammar.trigger_patterns, (std::vector<std::string>{"<t>"}));
}

TEST(PrepareChatTest, ControlTokensAreShownOnlyToAParserThatNeedsThem) {
  ChatPrompt prompt = MakePrompt(false);
  EXPECT_FALSE(Prepare(prompt).show_special);
  prompt.preserved = {"x"};  // printed anyway
  EXPECT_FALSE(Prepare(prompt).show_special);
  prompt.preserved = {"<t>"};
  EXPECT_TRUE(Prepare(prompt).show_special);
  prompt.parser = std::make_shared<PlainParser>(true);
  EXPECT_FALSE(Prepare(prompt).show_special);
}

TEST(PrepareChatTest, PromptMustLeaveRoom) {
  TestContext context;
  context.api.sequence_length = 10;
  EXPECT_TRUE(CheckPromptFits(9, context.api, "prompt").ok());
  EXPECT_EQ(CheckPromptFits(10, context.api, "prompt").field(), "prompt");
  EXPECT_EQ(CheckPromptFits(0, context.api, "prompt").message(), "the prompt is empty");
  GenerationRequest request;
  const auto parser = PrepareChat(UserSays("a long story"), context.api, &request);
  ASSERT_FALSE(parser.ok());
  EXPECT_EQ(parser.status().field(), "messages");
  EXPECT_EQ(parser.status().code(), StatusCode::kContextExceeded);
}

}  // namespace
}  // namespace outrider
