#include "bench/runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <random>
#include <string>

#include "bench/summary.h"

namespace outrider {
namespace {

// Answers at once, and remembers who was asked what.
class FakeEndpoint : public Endpoint {
 public:
  FakeEndpoint(std::string name, std::vector<std::string>* asked) : name_(std::move(name)), asked_(asked) {}

  Result<BenchAnswer> Ask(const BenchRequest& request) override {
    const std::lock_guard lock(mutex_);
    asked_->push_back(name_ + " " + request.messages.back().content);
    last = request;
    if (broken) return Unavailable("gone");
    BenchAnswer answer;
    answer.text = "to " + request.messages.back().content;
    answer.tokens = 2;
    answer.arrivals = {1};
    answer.seconds = 2;
    return answer;
  }
  Result<std::vector<RankedToken>> AskProbabilities(const BenchRequest&) override { return std::vector<RankedToken>(); }
  Status WaitUntilReady(Duration) override { return {}; }

  bool broken = false;
  BenchRequest last;

 private:
  std::mutex mutex_;
  const std::string name_;
  std::vector<std::string>* const asked_;
};

struct Fixture {
  std::vector<std::string> asked;
  FakeEndpoint a{"a", &asked}, b{"b", &asked};
  BenchPlan plan{.variants = {{"a", &a}, {"b", &b}}, .prompts = {{"x", {"1"}}, {"y", {"2"}}, {"z", {"3"}}}};
  std::vector<BenchRecord> records;
  std::atomic<bool> stop = false;
  EnergyMeter energy{"/nowhere"};

  Status Run(size_t stop_after = 1000) {
    return RunBench(
        plan, energy,
        [&](BenchRecord record) {
          records.push_back(std::move(record));
          stop = records.size() >= stop_after;
        },
        stop);
  }
};

TEST(RunnerTest, VariantsTakeTurnsAndEachBeginsNowAndThen) {
  Fixture f;
  ASSERT_TRUE(f.Run().ok());
  EXPECT_EQ(f.asked, (std::vector<std::string>{"a 1", "b 1", "b 2", "a 2", "a 3", "b 3"}));
  EXPECT_EQ(f.records.size(), f.plan.Requests());
  EXPECT_EQ(f.records[2].category, "y");
  EXPECT_EQ(f.records[2].question.prompt, 1);
}

TEST(RunnerTest, LaterTurnsBringTheServersOwnAnswers) {
  Fixture f;
  f.plan.prompts = {{"x", {"first", "second"}}};
  f.plan.contexts = {100};
  f.plan.runs = 2;
  ASSERT_TRUE(f.Run().ok());
  EXPECT_EQ(f.records.size(), 8u);
  EXPECT_EQ(f.plan.Requests(), 8u);
  const std::vector<BenchMessage>& messages = f.a.last.messages;
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_TRUE(messages[0].content.ends_with("first"));
  EXPECT_GT(messages[0].content.size(), 300u) << "prose before the first";
  EXPECT_EQ(messages[1].role, "assistant");
  EXPECT_EQ(messages[1].content, "to " + messages[0].content);
  EXPECT_EQ(messages[2].content, "second");
  EXPECT_EQ(f.a.last.seed, 2u) << "another run, another seed";
}

TEST(RunnerTest, SeveralAtATimeAreAllAnswered) {
  Fixture f;
  f.plan.concurrencies = {2};
  ASSERT_TRUE(f.Run().ok());
  ASSERT_EQ(f.records.size(), 6u);
  EXPECT_EQ(f.records[0].variant, "a");
  EXPECT_EQ(f.records[1].variant, "a");
  EXPECT_EQ(f.records[2].variant, "b");
  EXPECT_EQ(f.records[1].question.concurrency, 2);
}

TEST(RunnerTest, AVariantThatKeepsFailingEndsIt) {
  Fixture f;
  f.plan.runs = 10;
  f.b.broken = true;
  const Status status = f.Run();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "'b': gone");
  int failed = 0;
  for (const BenchRecord& record : f.records) failed += record.error.empty() ? 0 : 1;
  EXPECT_EQ(failed, 3);
  EXPECT_FALSE(WarmUp(f.plan).ok());
}

TEST(RunnerTest, StopsWhenTold) {
  Fixture f;
  f.plan.runs = 10;
  EXPECT_TRUE(f.Run(4).ok());
  EXPECT_EQ(f.records.size(), 4u);
}

// What else the machine does, which slows down both servers alike.
struct Machine {
  double Next() {
    load = 0.8 * load + 0.1 * normal(random);
    return load + 0.05 * normal(random);
  }

  std::mt19937 random;
  std::normal_distribution<double> normal;
  double load = 0;
};

// Answers with a speed of its own, reduced by the load of the machine.
class SimulatedServer : public Endpoint {
 public:
  SimulatedServer(Machine* machine, std::vector<double> speeds) : machine_(machine), speeds_(std::move(speeds)) {}

  Result<BenchAnswer> Ask(const BenchRequest& request) override {
    const auto prompt = static_cast<size_t>(std::stoi(request.messages.back().content));
    BenchAnswer answer;
    answer.tokens = 101;
    answer.arrivals = {0.5, 0.6};
    answer.seconds = 0.5 + 100 / (speeds_[prompt] * std::exp(machine_->Next()));
    return answer;
  }
  Result<std::vector<RankedToken>> AskProbabilities(const BenchRequest&) override { return std::vector<RankedToken>(); }
  Status WaitUntilReady(Duration) override { return {}; }

 private:
  Machine* const machine_;
  const std::vector<double> speeds_;  // by prompt
};

// A slow server and one that is 1.6 times as quick, more for some prompts and less for others: the interval holds 1.6
// in at least 95 of 100 benches.
TEST(RunnerTest, ABenchRecoversAKnownRatio) {
  constexpr unsigned kBenches = 400;
  int held = 0;
  for (unsigned bench = 0; bench < kBenches; ++bench) {
    Machine machine{std::mt19937(bench), {}};
    std::vector<double> slow, quick;
    BenchPlan plan;
    plan.runs = 3;
    for (int prompt = 0; prompt < 16; ++prompt) {
      slow.push_back(30);
      quick.push_back(30 * 1.6 * std::exp(0.15 * machine.normal(machine.random)));
      plan.prompts.push_back({"x", {std::to_string(prompt)}});
    }
    SimulatedServer slow_server(&machine, slow), quick_server(&machine, quick);
    plan.variants = {{"slow", &slow_server}, {"quick", &quick_server}};
    std::vector<BenchRecord> records;
    EnergyMeter energy("/nowhere");
    const std::atomic<bool> stop = false;
    ASSERT_TRUE(RunBench(
                    plan, energy, [&](BenchRecord record) { records.push_back(std::move(record)); }, stop)
                    .ok());
    held += SummariseRecords(records).variants[1].slices[0].speed_up_interval.Contains(1.6) ? 1 : 0;
  }
  EXPECT_GE(held, 0.95 * kBenches);
}

}  // namespace
}  // namespace outrider
