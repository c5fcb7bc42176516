#include "api/infill.h"

#include <gtest/gtest.h>

#include "api/api_test_util.h"

namespace outrider {
namespace {

// Bytes, and the tokens of a model that fills gaps.
class GapTokenizer : public FakeTokenizer {
 public:
  InfillTokens infill() const override { return marks; }
  bool adds_bos() const override { return false; }

  InfillTokens marks = {.prefix = 1, .suffix = 2, .middle = 3};
};

struct InfillTest : testing::Test {
  GapTokenizer tokenizer;
  std::unique_ptr<ChatTemplate> chat = MakeTemplate("");
  ApiContext context{tokenizer, *chat, "gaps", 0, 4096, 1, {}, -1};

  // Marks as digits, other tokens as the characters they are.
  std::string Prompt(const std::string& body, int max_tokens = -1) {
    const Result<std::vector<Token>> prompt = InfillPrompt(Json::parse(body), context, max_tokens);
    EXPECT_TRUE(prompt.ok()) << prompt.status().field() << ": " << prompt.status().message();
    std::string text;
    for (size_t i = 0; prompt.ok() && i < prompt->size(); ++i) {
      text += static_cast<char>((*prompt)[i] < 10 ? (*prompt)[i] + '0' : (*prompt)[i]);
    }
    return text;
  }
};

TEST_F(InfillTest, PrefixSuffixAndTheBeginningOfTheMiddle) {
  const std::string body = R"({"input_prefix": "before", "input_suffix": "after", "prompt": "x"})";
  EXPECT_EQ(Prompt(body), "1beforex2after3");
  context.suffix_first = true;
  EXPECT_EQ(Prompt(body), "2after1beforex3");
  context.suffix_first = false;
  EXPECT_EQ(Prompt(R"({"input_prefix": "", "input_suffix": ""})"), "123");
}

TEST_F(InfillTest, OtherFilesComeFirst) {
  const std::string body = R"({"input_prefix": "p", "input_suffix": "s", "input_extra": [{"filename": "f", "text": "t"},
                               {"text": "u"}]})";
  EXPECT_EQ(Prompt(body), "\n\n--- snippet ---\n\nt\n\n--- snippet ---\n\nu1p2s3");
  tokenizer.marks.repository = 4;
  tokenizer.marks.file = 5;
  EXPECT_EQ(Prompt(body), "4myproject\n5f\nt5tmp\nu5filename\n1p2s3");
}

TEST_F(InfillTest, WhatIsNearestToTheGapIsKept) {
  context.batch = 16;  // 12 tokens before the gap, 4 behind it less 2 for marks
  EXPECT_EQ(Prompt(R"({"input_prefix": "0123456789abcdefgh", "input_suffix": "uvwxyz"})"), "16789abcdefgh2uv3");
  EXPECT_EQ(Prompt(R"({"input_prefix": "a", "input_suffix": "uvwxyz", "prompt": "qqqqq"})"), "1aqqqqq23");
  context.sequence_length = 26;
  EXPECT_EQ(Prompt(R"({"input_prefix": "p", "input_suffix": "s", "input_extra": [{"text": "0123456789abcdef"}]})"),
            "6789abcdef1p2s3");
  EXPECT_EQ(Prompt(R"({"input_prefix": "p", "input_suffix": "s", "input_extra": [{"text": "0123456789abcdef"}]})", 4),
            "ef1p2s3")
      << "there must be room for the answer";
}

TEST_F(InfillTest, MarksInTheTextAreText) {
  EXPECT_EQ(Prompt(R"({"input_prefix": "<bos>", "input_suffix": ""})"), "1<bos>23");
}

TEST_F(InfillTest, TheEndpointAnswersLikeCompletion) {
  const Json body = Json::parse(R"({"input_prefix": "a", "input_suffix": "b", "n_predict": 3, "n": 2})");
  Result<ParsedRequest> request = ParseInfill(body, "", context);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->generation.max_tokens, 3);
  EXPECT_EQ(request->generation.prompt, (std::vector<Token>{1, 'a', 2, 'b', 3}));
  EXPECT_EQ(request->more.size(), 1u);
}

TEST_F(InfillTest, WrongInputIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"input_suffix": ""})", "input_prefix"},
      {R"({"input_prefix": ""})", "input_suffix"},
      {R"({"input_prefix": 5, "input_suffix": ""})", "input_prefix"},
      {R"({"input_prefix": "", "input_suffix": "", "prompt": []})", "prompt"},
      {R"({"input_prefix": "", "input_suffix": "", "input_extra": {}})", "input_extra"},
      {R"({"input_prefix": "", "input_suffix": "", "input_extra": [{"filename": "f"}]})", "input_extra[0].text"},
      {R"({"input_prefix": "", "input_suffix": "", "input_extra": [{"text": 5}]})", "input_extra[0].text"},
      {R"({"input_prefix": "", "input_suffix": "", "input_extra": [{"text": "", "filename": 5}]})",
       "input_extra[0].filename"},
  };
  for (const auto& [body, field] : cases) {
    EXPECT_EQ(ParseInfill(Json::parse(body), "", context).status().field(), field) << body;
  }
  tokenizer.marks.middle = kNoToken;
  EXPECT_EQ(ParseInfill(Json::parse(cases[0].first), "", context).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace outrider
