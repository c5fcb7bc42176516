#include "worlds/workload.h"

#include <gtest/gtest.h>

#include <cmath>

#include "worlds/machine_record.h"

namespace outrider {
namespace {

Workload Example() {
  RecordedDraft draft{1, {0.9f, 0.02f, 0.5f}};
  return {"example", {"suffix", "model"}, {{"chat", 12, {{draft, {}}, {{}, draft}}}}};
}

TEST(WorkloadTest, IsReadAsItWasWritten) {
  const auto read = ParseWorkload(DumpWorkload(Example()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->drafters, Example().drafters);
  ASSERT_EQ(read->answers.size(), 1u);
  const RecordedAnswer& answer = read->answers[0];
  EXPECT_EQ(answer.category, "chat");
  EXPECT_EQ(answer.prompt_tokens, 12);
  ASSERT_EQ(answer.tokens(), 2);
  EXPECT_EQ(answer.drafts[0][0].right, 1);
  ASSERT_EQ(answer.drafts[0][0].confidences.size(), 3u);
  const auto log_odds = [](double p) { return std::log(p / (1 - p)); };
  EXPECT_NEAR(log_odds(answer.drafts[0][0].confidences[0]), log_odds(0.9), 0.085);
  EXPECT_TRUE(answer.drafts[0][1].confidences.empty());
}

TEST(WorkloadTest, PredictsWhatWasRecorded) {
  const Workload workload = Example();
  const WorldRequest request = RequestFrom(workload, workload.answers[0], {{"model"}, {"unknown"}});
  EXPECT_FALSE(request.predictions[0](0, 0));
  EXPECT_TRUE(request.predictions[0](1, 0)->right);
  EXPECT_FALSE(request.predictions[0](1, 1)->right);
  EXPECT_FALSE(request.predictions[0](1, 3));
  EXPECT_FALSE(request.predictions[0](9, 0));
  EXPECT_FALSE(request.predictions[1](1, 0));
}

TEST(WorkloadTest, RefusesWhatItDidNotWrite) {
  const std::string good = DumpWorkload(Example());
  for (const std::string& bad :
       {std::string(), std::string("{}"), good.substr(0, good.size() / 2), good.substr(0, good.find('\n') + 1),
        std::string(R"({"workload":"x","drafters":["a"]})") + "\n" + R"({"category":"c","prompt":1,"drafts":[["ZA"]]})",
        std::string(R"({"workload":"x","drafters":["a"]})") + "\n" +
            R"({"category":"c","prompt":-1,"drafts":[[""]]})"}) {
    EXPECT_FALSE(ParseWorkload(bad).ok()) << bad;
  }
}

TEST(MachineRecordTest, InterpolatesBetweenWhatWasMeasured) {
  const auto record = ParseMachineRecord(
      R"({"name":"m","steps":[[1,100,10],[3,100,14],[1,200,20],[3,200,24]],"drafters":{"model":{"token_ms":2}}})");
  ASSERT_TRUE(record.ok()) << record.status().message();
  const WorldMachine machine = record->Machine();
  EXPECT_NEAR(machine.step_seconds(1, 0), 0.010, 1e-9);
  EXPECT_NEAR(machine.step_seconds(2, 100), 0.012, 1e-9);
  EXPECT_NEAR(machine.step_seconds(2, 150), 0.017, 1e-9);
  EXPECT_NEAR(machine.step_seconds(5, 200), 0.028, 1e-9);
  EXPECT_TRUE(record->Drafter("model").computes());
  EXPECT_FALSE(record->Drafter("suffix").computes());
}

TEST(MachineRecordTest, RefusesNonsense) {
  for (const char* bad :
       {"[]", R"({"name":"m"})", R"({"name":"m","steps":[]})", R"({"name":"m","steps":[[1,0,-1]]})",
        R"({"name":"m","steps":[[2,0,1],[1,0,1]]})", R"({"name":"m","steps":[[1,0,1]],"switch_ms":"x"})",
        R"({"name":"m","steps":[[1,0,1]],"drafters":{"model":3}})"}) {
    EXPECT_FALSE(ParseMachineRecord(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace outrider
