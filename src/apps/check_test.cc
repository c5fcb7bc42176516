#include "apps/check.h"

#include <gtest/gtest.h>

#include "apps/check_verdict.h"

namespace outrider {
namespace {

TEST(CheckTest, RejectionSamplingIsRefused) {
  ServeOptions options;
  options.model.path = "/nowhere/model.gguf";
  options.scheduler.verify = VerifyMode::kReject;
  bool exact = false;
  const Status status = Check(options, &exact);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("--verify reject"), std::string::npos) << status.message();
  EXPECT_FALSE(exact);
}

TEST(CheckVerdictTest, IsNotKeptIfNothingWasDrafted) {
  CheckVerdict verdict;
  verdict.AddLogits(true);
  EXPECT_TRUE(verdict.exact() && verdict.conclusive()) << "there are no drafters";
  verdict.AddTexts(Comparison::kSkipped);
  verdict.AddTexts(Comparison::kSkipped);
  EXPECT_TRUE(verdict.exact());
  EXPECT_FALSE(verdict.conclusive());
  verdict.AddTexts(Comparison::kSame);
  EXPECT_TRUE(verdict.exact() && verdict.conclusive());
}

TEST(CheckVerdictTest, OneDifferenceIsEnough) {
  CheckVerdict logits, texts;
  logits.AddLogits(false);
  logits.AddLogits(true);
  logits.AddTexts(Comparison::kSkipped);
  EXPECT_TRUE(!logits.exact() && logits.conclusive());
  texts.AddTexts(Comparison::kDifferent);
  texts.AddTexts(Comparison::kSame);
  EXPECT_TRUE(!texts.exact() && texts.conclusive());
}

}  // namespace
}  // namespace outrider
