#include "scheduler/step_batch.h"

#include <gtest/gtest.h>

#include <chrono>

#include "scheduler/scheduler_test_util.h"

namespace outrider {
namespace {

constexpr int kSlice = 10;  // rows of prompts while others generate

struct StepBatchTest : testing::Test {
  Sequence& Begin(const std::string& prompt, int submitted = 0) {
    PendingRequest pending = Pending(Request(prompt), TimePoint() + std::chrono::seconds(submitted));
    return *pool.Begin(pending, {});
  }
  Sequence& Generating(const std::string& prompt) {
    Sequence& sequence = Begin(prompt);
    BeginAnswer(engine, sequence, 'x');
    return sequence;
  }
  // Rows by sequence, as planned; those that take no part are left out.
  std::vector<std::pair<SeqId, int>> Plan() {
    step.ShareRows(pool.sequences(), {});
    std::vector<std::pair<SeqId, int>> rows;
    for (const StepEntry& entry : step.entries()) rows.emplace_back(entry.sequence->id, entry.rows);
    return rows;
  }
  using Rows = std::vector<std::pair<SeqId, int>>;

  FakeEngine engine{SmallEngine(3), FakeEngine::Hashing(256)};
  SlotPool pool{engine};
  StepBatch step{engine, kSlice};
};

TEST_F(StepBatchTest, APromptAloneGetsWhatIsComputedAtOnce) {
  Begin(std::string(100, 'p'));
  EXPECT_EQ(Plan(), (Rows{{0, 32}}));
}

TEST_F(StepBatchTest, BesideAnAnswerPromptsGetASlice) {
  Generating("abc");
  Begin(std::string(100, 'p'));
  EXPECT_EQ(Plan(), (Rows{{0, 1}, {1, kSlice}}));
}

TEST_F(StepBatchTest, TheOldestPromptComesFirst) {
  Begin(std::string(100, 'p'), /*submitted=*/2);
  Begin(std::string(20, 'q'), /*submitted=*/1);
  EXPECT_EQ(Plan(), (Rows{{1, 20}})) << "a part of the younger one would only be a small part of the batch";
}

TEST_F(StepBatchTest, AfterARollbackAFewTokensAreDecodedAgainAndDraftsGoOn) {
  Sequence& sequence = Generating("abcdef");
  engine.TruncateTo(sequence.id, 3);
  Begin(std::string(100, 'p'));
  EXPECT_EQ(Plan(), (Rows{{0, 4}, {1, kSlice}}));
  EXPECT_TRUE(step.MayDraft(step.entries()[0]));
  EXPECT_FALSE(step.MayDraft(step.entries()[1]));
}

TEST_F(StepBatchTest, AfterALongRollbackAnAnswerIsReadLikeAPrompt) {
  Sequence& sequence = Generating(std::string(100, 'p'));
  engine.TruncateTo(sequence.id, 0);
  EXPECT_EQ(Plan(), (Rows{{0, 32}}));
  EXPECT_FALSE(step.MayDraft(step.entries()[0])) << "its next token is not drawn in this step";
}

TEST_F(StepBatchTest, ASuspectIsDecodedAloneAndWithoutADraft) {
  Generating("abc");
  Generating("def").suspect = true;
  EXPECT_EQ(Plan(), (Rows{{1, 1}}));
  EXPECT_FALSE(step.MayDraft(step.entries()[0]));
}

TEST_F(StepBatchTest, WhoRestsTakesNoPart) {
  Generating("abc").resting = true;
  Generating("def");
  EXPECT_EQ(Plan(), (Rows{{1, 1}}));
}

TEST_F(StepBatchTest, LogitsOfTheLastTokenAndOfTheDraft) {
  const int layer = 0;
  ASSERT_TRUE(engine.ProvideHidden(std::span(&layer, 1)).ok());
  Sequence& sequence = Generating("abc");
  engine.TruncateTo(sequence.id, 2);
  Begin(std::string(100, 'p'));
  Plan();
  const std::vector<DraftToken> draft = {{'y', 0.5f}, {'z', 0.5f}};
  StepEntry& answer = step.entries()[0];
  StepEntry& prompt = step.entries()[1];
  answer.draft = draft;
  step.AddRows(answer, /*wants_hidden=*/true);
  step.AddRows(prompt, /*wants_hidden=*/false);
  EXPECT_EQ(answer.first_row, 0);
  EXPECT_EQ(answer.logits_row, 1);
  EXPECT_EQ(prompt.first_row, 4);
  EXPECT_EQ(prompt.logits_row, -1) << "the prompt is not complete";

  const auto rows = step.batch().rows();
  ASSERT_EQ(rows.size(), 14u);
  const std::string tokens = "cxyzpppppppppp";
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool of_answer = i < 4;
    EXPECT_EQ(rows[i].token, tokens[i]) << i;
    EXPECT_EQ(rows[i].seq, of_answer ? 0 : 1) << i;
    EXPECT_EQ(rows[i].pos, static_cast<Pos>(of_answer ? i + 2 : i - 4)) << i;
    EXPECT_EQ(rows[i].wants_logits, i >= 1 && i < 4) << i;
    EXPECT_EQ(rows[i].wants_hidden, of_answer) << i;
  }
  EXPECT_TRUE(engine.Decode(step.batch()).ok());
}

TEST_F(StepBatchTest, DraftsMayUseTheRowsAndLogitsThatAreLeft) {
  Generating("abc");
  Generating("def");
  Plan();
  EXPECT_EQ(step.room(), 30) << "each of the two needs the logits of its own row, of 32";
  Begin(std::string(100, 'p'));
  Plan();
  EXPECT_EQ(step.room(), 29);
}

TEST(StepBatchOfRunningStatesTest, TheTailOfALongPromptIsAStepOfItsOwn) {
  EngineInfo info = SmallEngine(1, 1000);
  info.max_batch = info.micro_batch = 512;
  info.rollback = Rollback::kReplay;
  const auto rows = [&](bool remembers, size_t length) {
    info.remembers = remembers;
    FakeEngine engine(info, FakeEngine::Hashing(256));
    SlotPool pool(engine);
    PendingRequest pending = Pending(Request(std::string(length, 'p')));
    pool.Begin(pending, {});
    StepBatch step(engine, kSlice);
    step.ShareRows(pool.sequences(), {});
    return step.entries()[0].rows;
  };
  EXPECT_EQ(rows(true, 300), 268) << "the state before the tail can be remembered";
  EXPECT_EQ(rows(false, 300), 300);
  EXPECT_EQ(rows(true, 200), 200) << "too short to be worth a step more";
}

}  // namespace
}  // namespace outrider
