#include "api/answer_limit.h"

#include <gtest/gtest.h>

#include "api/api_test_util.h"
#include "base/request_budget.h"

namespace outrider {
namespace {

ParsedRequest Asking(int alternatives, int max_tokens, bool stream = false) {
  ParsedRequest request;
  request.generation.prompt.assign(10, 1);
  request.generation.top_logprobs = alternatives;
  request.generation.max_tokens = max_tokens;
  request.stream = stream;
  return request;
}

TEST(AnswerLimitTest, OnlyWholeAnswersWithManyAlternativesAreLimited) {
  TestContext test;
  ApiContext api = test.api;
  api.sequence_length = 1 << 20;
  const int most = kMaxWholeAlternatives / 1000;

  ParsedRequest open = Asking(1000, -1);
  EXPECT_TRUE(LimitWholeAnswer(api, &open).ok());
  EXPECT_EQ(open.generation.max_tokens, most);

  ParsedRequest too_long = Asking(1000, most + 1);
  EXPECT_EQ(LimitWholeAnswer(api, &too_long).field(), "max_tokens");
  ParsedRequest fits = Asking(1000, most);
  EXPECT_TRUE(LimitWholeAnswer(api, &fits).ok());

  ParsedRequest streamed = Asking(1000, most + 1, /*stream=*/true), none = Asking(-1, -1), few = Asking(1, 5000);
  for (ParsedRequest* request : {&streamed, &none, &few}) {
    const int asked = request->generation.max_tokens;
    EXPECT_TRUE(LimitWholeAnswer(api, request).ok());
    EXPECT_EQ(request->generation.max_tokens, asked);
  }
  api.sequence_length = 200;
  EXPECT_TRUE(LimitWholeAnswer(api, &too_long).ok()) << "the context ends it earlier";
  EXPECT_EQ(too_long.generation.max_tokens, most + 1);
}

}  // namespace
}  // namespace outrider
