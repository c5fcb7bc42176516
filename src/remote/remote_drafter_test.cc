#include "remote/remote_drafter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "remote/loopback_network_test_util.h"
#include "remote/soak_test_util.h"
#include "sampling/fake_filters.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 258;
constexpr int kSequences = 3;

EngineInfo DraftEngine(int n_sequences) {
  EngineInfo info;
  info.n_vocab = kVocabulary;
  info.n_sequences = n_sequences;
  info.sequence_length = 2000;
  info.max_batch = 64;
  info.micro_batch = 64;
  info.max_outputs = n_sequences;
  return info;
}

// A server that drafts by a script, a client, and what lies between.
struct Fixture {
  explicit Fixture(
      std::function<int()> delay = [] { return 0; }, int server_sequences = kSequences,
      FakeEngine::Script its_script = FakeEngine::Hashing(200))
      : script(its_script), engine(DraftEngine(server_sequences), std::move(its_script)), batcher(model, {}, clock) {
    auto its_network = std::make_unique<LoopbackNetwork>(batcher, clock, std::move(delay));
    network = its_network.get();
    drafter =
        std::make_unique<RemoteDrafter>(std::move(its_network), tokenizer, kSequences, RemoteDrafterOptions(), clock);
  }

  void Begin(SeqId seq, const std::vector<Token>& history, const std::string& owner = "") {
    DraftContext context;
    context.owner = owner;
    context.sampling.temperature = 0;
    drafter->Begin(seq, history, context);
  }

  // And lets the context travel, which takes asking once.
  void BeginAndPass(SeqId seq, const std::vector<Token>& history, int times) {
    Begin(seq, history);
    Pass(3);
    Ask(seq, history);
    Pass(times);
  }

  double due = 0;  // of the last question

  std::vector<Token> Ask(SeqId seq, const std::vector<Token>& history, int max_tokens = 16, double patience = 0) {
    Proposal proposal;
    proposal.patience = patience;
    proposal.seq = seq;
    proposal.history = history;
    proposal.max_tokens = max_tokens;
    Proposal* proposals[] = {&proposal};
    drafter->Propose(proposals);
    due = proposal.due;
    std::vector<Token> tokens;
    for (const DraftToken& token : proposal.draft.tokens) tokens.push_back(token.token);
    return tokens;
  }

  std::vector<Token> Says(std::vector<Token> history, size_t count) const {
    std::vector<Token> tokens;
    for (size_t i = 0; i < count; ++i) {
      tokens.push_back(script(history));
      history.push_back(tokens.back());
    }
    return tokens;
  }

  void Pass(int times) {
    for (int i = 0; i < times; ++i) network->Pass();
  }

  FakeEngine::Script script;
  FakeEngine engine;
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  DraftModel model{engine, tokenizer, filters};
  ManualClock clock;
  DraftBatcher batcher;
  LoopbackNetwork* network = nullptr;
  std::unique_ptr<RemoteDrafter> drafter;
};

std::vector<Token> Text(size_t length) {
  std::vector<Token> text;
  for (size_t i = 0; i < length; ++i) text.push_back(static_cast<Token>((i * 7 + 3) % 200));
  return text;
}

TEST(RemoteDrafterTest, BringsWhatTheOtherMachineSays) {
  Fixture f;
  const std::vector<Token> history = Text(40);
  f.Begin(0, history);
  EXPECT_TRUE(f.Ask(0, history).empty()) << "nothing has arrived, and nobody waits";
  f.Pass(3);
  f.Ask(0, history);  // reads that the server is ready, and sends the context
  f.Pass(40);
  EXPECT_EQ(f.Ask(0, history), f.Says(history, 16));
}

TEST(RemoteDrafterTest, ADraftThatAgreesIsExtendedWhileTheTargetVerifies) {
  Fixture f;
  std::vector<Token> history = Text(40);
  f.BeginAndPass(0, history, 40);
  const uint64_t drafted = f.batcher.stats().drafted_tokens;
  const std::vector<Token> right = f.Says(history, 9);
  history.insert(history.end(), right.begin(), right.end());
  f.drafter->Commit(0, {history, 9});
  EXPECT_EQ(f.Ask(0, history), f.Says(history, 15)) << "at once: it was all there";
  f.Pass(40);
  EXPECT_EQ(f.batcher.stats().drafted_tokens, drafted + 9) << "and nothing is drafted twice";
}

TEST(RemoteDrafterTest, TokensThatTheServerDraftedAreCommittedNowAndThen) {
  Fixture f;
  std::vector<Token> history = Text(40);
  f.BeginAndPass(0, history, 60);
  const int steps = 20;
  for (int i = 0; i < steps; ++i) {
    const std::vector<Token> right = f.Says(history, 3);
    history.insert(history.end(), right.begin(), right.end());
    f.drafter->Commit(0, {history, 3});
    f.Pass(20);
    EXPECT_GE(f.Ask(0, history).size(), 8u) << "there is always enough left";
  }
  EXPECT_LE(f.batcher.stats().commits, static_cast<uint64_t>(steps) / 2);
  EXPECT_LE(history.size() - f.batcher.stats().committed_tokens - 40, 8u);
}

TEST(RemoteDrafterTest, AWrongDraftIsDroppedAtBothEnds) {
  Fixture f;
  std::vector<Token> history = Text(40);
  f.BeginAndPass(0, history, 40);
  history.push_back((f.Says(history, 1)[0] + 1) % 200);
  f.drafter->Commit(0, {history, 1});
  EXPECT_TRUE(f.Ask(0, history).empty());
  f.Pass(40);
  EXPECT_EQ(f.Ask(0, history), f.Says(history, 16));
  EXPECT_EQ(f.batcher.stats().broken, 0u);
}

TEST(RemoteDrafterTest, TokensThatWereConfirmedBeforeTheyWereSentAreNotWaitedFor) {
  Fixture f;
  std::vector<Token> history = Text(40);
  f.BeginAndPass(0, history, 0);
  size_t sent = 0;
  for (int i = 0; i < 40 && sent == 0; ++i) {
    f.Pass(1);
    sent = f.Ask(0, history).size();
  }
  ASSERT_LT(sent, 8u) << "a first part";
  f.Pass(3);  // a few more tokens, which are not sent yet
  const std::vector<Token> right = f.Says(history, sent + 2);
  history.insert(history.end(), right.begin(), right.end());
  f.drafter->Commit(0, {history, static_cast<int>(right.size())});
  f.Pass(40);
  EXPECT_EQ(f.Ask(0, history), f.Says(history, 16));
  const std::vector<Token> more = f.Says(history, 3);
  history.insert(history.end(), more.begin(), more.end());
  f.drafter->Commit(0, {history, 3});
  f.Pass(40);
  EXPECT_EQ(f.Ask(0, history), f.Says(history, 16));
  EXPECT_EQ(f.batcher.stats().broken, 0u);
}

TEST(RemoteDrafterTest, KnowsWhenAnAnswerIsDueAndWaitsIfToldTo) {
  int delay = 5;
  Fixture f([&delay] { return delay; });
  std::vector<Token> history = Text(40);
  f.Begin(0, history);
  for (int i = 0; i < 4; ++i) {
    f.Pass(30);
    f.Ask(0, history);
  }
  const auto be_wrong = [&] {
    history.push_back((f.Says(history, 1)[0] + 1) % 200);
    f.drafter->Commit(0, {history, 1});
    f.Ask(0, history);
    return f.due;
  };
  EXPECT_EQ(be_wrong(), 0) << "never seen one";
  f.Pass(40);
  EXPECT_FALSE(f.Ask(0, history).empty());
  for (int i = 0; i < 30; ++i) {
    be_wrong();
    f.Pass(40);
    f.Ask(0, history);
  }
  const double due = be_wrong();
  EXPECT_NEAR(due, 0.014, 0.004) << "there and back, and four tokens";
  EXPECT_NEAR(f.network->Servers()[0].answer_seconds, 0.014, 0.004) << "the dashboard shows it";
  EXPECT_TRUE(f.Ask(0, history).empty());
  const TimePoint start = f.clock.Now();
  EXPECT_FALSE(f.Ask(0, history, 16, due).empty());
  EXPECT_LE(Milliseconds(f.clock.Now() - start), 1000 * due);
  EXPECT_EQ(f.due, 0);

  // The network gets slow. Waits end in time, and soon it is known that they are in vain.
  delay = 100;
  double waited = 0;
  for (int i = 0; i < 200; ++i) {
    const double expected = be_wrong();
    const TimePoint before = f.clock.Now();
    f.Ask(0, history, 16, expected < 0.02 ? expected : 0);  // as a step of 20 ms would
    waited += Milliseconds(f.clock.Now() - before);
    f.Pass(20);
  }
  EXPECT_GT(be_wrong(), 0.02) << "more than a step: nobody waits for it";
  EXPECT_LT(waited, 200) << "milliseconds, in 200 steps of which each had to do without a draft";
}

TEST(RemoteDrafterTest, AnotherRequestWithTheSameBeginningIsNotSentAgain) {
  Fixture f({[] { return 0; }}, 1);
  const std::vector<Token> history = Text(600);
  for (const uint64_t reused : {0u, 512u}) {
    f.BeginAndPass(0, history, 60);
    EXPECT_EQ(f.Ask(0, history), f.Says(history, 16));
    EXPECT_EQ(f.batcher.stats().reused_tokens, reused);
    f.drafter->End(0, history, true);
    f.Pass(2);
  }
  EXPECT_EQ(f.batcher.stats().context_tokens, 600u + 88u);
}

TEST(RemoteDrafterTest, TheTextOfAnotherOwnerIsNotContinuedFrom) {
  Fixture f([] { return 0; }, 1);  // one sequence, so that the same memory would be used
  const std::vector<Token> history = Text(600);
  const auto reused = [&](const char* owner) {
    const uint64_t before = f.batcher.stats().reused_tokens;
    f.Begin(0, history, owner);
    f.Pass(3);
    f.Ask(0, history);
    f.Pass(60);
    EXPECT_EQ(f.Ask(0, history), f.Says(history, 16)) << owner;
    f.drafter->End(0, history, true);
    f.Pass(10);
    return f.batcher.stats().reused_tokens - before;
  };
  EXPECT_EQ(reused("anna"), 0u);
  EXPECT_EQ(reused("anna"), 512u) << "there is a memory";
  EXPECT_EQ(reused("bert"), 0u);
  EXPECT_EQ(reused(""), 0u);
  EXPECT_EQ(reused("anna"), 0u) << "it has been replaced";
}

TEST(RemoteDrafterTest, ABrokenStreamIsReplacedAndTheTextSentAgain) {
  Fixture f;
  std::vector<Token> history = Text(40);
  f.BeginAndPass(0, history, 40);
  f.network->Break();
  f.network->reachable = false;
  history.push_back(7);
  f.drafter->Commit(0, {history, 1});
  f.Pass(10);
  EXPECT_TRUE(f.Ask(0, history).empty()) << "the request goes on without";
  f.network->reachable = true;
  for (int i = 0; i < 3; ++i) {
    f.Ask(0, history);
    f.Pass(40);
  }
  EXPECT_EQ(f.Ask(0, history), f.Says(history, 16));
}

// A server that hangs while its connection answers pings: nothing else ends its streams.
TEST(RemoteDrafterTest, TheStreamToAServerThatHangsIsReplaced) {
  Fixture f;
  std::vector<Token> history = Text(40);
  f.BeginAndPass(0, history, 40);
  ASSERT_FALSE(f.Ask(0, history).empty());
  f.network->hangs = true;
  const auto steps_of_20_ms = [&](int count) {
    for (int i = 0; i < count; ++i) {
      history.push_back((f.Says(history, 1)[0] + 1) % 200);
      f.drafter->Commit(0, {history, 1});
      f.Pass(20);
      EXPECT_TRUE(f.Ask(0, history).empty()) << "the request goes on without drafts";
    }
  };
  steps_of_20_ms(499);
  EXPECT_TRUE(f.network->failures.empty()) << "it may be busy";
  steps_of_20_ms(3);
  ASSERT_EQ(f.network->failures.size(), 1u);
  EXPECT_NE(f.network->failures[0].find("has not answered for"), std::string::npos) << f.network->failures[0];

  f.network->hangs = false;
  for (int i = 0; i < 3; ++i) {
    f.Pass(60);
    f.Ask(0, history);
  }
  EXPECT_EQ(f.Ask(0, history), f.Says(history, 16)) << "the new stream has the whole text";
  f.drafter->End(0, history, true);
  f.Pass(60'000);
  EXPECT_EQ(f.network->failures.size(), 1u) << "nobody waits after the end";
}

TEST(RemoteDrafterTest, AServerThatDoesNotAnswerTheOpenHangs) {
  Fixture f;
  const std::vector<Token> history = Text(40);
  f.network->hangs = true;
  f.Begin(0, history);
  f.Pass(9'990);
  f.Ask(0, history);
  EXPECT_TRUE(f.network->failures.empty());
  f.Pass(20);
  f.Ask(0, history);
  EXPECT_EQ(f.network->failures.size(), 1u);
  f.Ask(0, history);
  EXPECT_EQ(f.network->failures.size(), 1u) << "the next stream has as much time";
}

TEST(RemoteDrafterTest, AServerHasTimeToReadALongContext) {
  Fixture f;
  const std::vector<Token> history = Text(1500);
  f.Begin(0, history);
  f.Pass(3);
  f.Ask(0, history);  // sends the context
  f.network->hangs = true;
  f.Pass(24'000);
  f.Ask(0, history);
  EXPECT_TRUE(f.network->failures.empty()) << "15 s more than for an answer alone";
  f.Pass(2'000);
  f.Ask(0, history);
  EXPECT_EQ(f.network->failures.size(), 1u);
}

// Where the draft model ends the text and the target does not, there is nothing to send, but the server does not hang.
TEST(RemoteDrafterTest, AServerThatHasNothingToProposeSaysSo) {
  Fixture f([] { return 0; }, kSequences, [](std::span<const Token>) { return FakeTokenizer::kEos; });
  std::vector<Token> history = Text(40);
  f.BeginAndPass(0, history, 40);
  for (int i = 0; i < 1000; ++i) {
    history.push_back(7);
    f.drafter->Commit(0, {history, 1});
    f.Pass(20);
    EXPECT_TRUE(f.Ask(0, history).empty());
    EXPECT_EQ(f.due, 0) << "no draft is on its way";
  }
  EXPECT_TRUE(f.network->failures.empty());
  EXPECT_EQ(f.batcher.stats().opened, 1u);
}

TEST(RemoteDrafterTest, AServerWithoutRoomIsAServerThatSaysNothing) {
  Fixture f({[] { return 0; }}, 1);
  const std::vector<Token> history = Text(40);
  f.Begin(0, history);
  f.Begin(1, history);
  for (int i = 0; i < 3; ++i) {
    f.Pass(40);
    f.Ask(0, history);
    f.Ask(1, history);
  }
  EXPECT_EQ(f.Ask(0, history).size(), 16u);
  EXPECT_TRUE(f.Ask(1, history).empty());
  EXPECT_GT(f.batcher.stats().refused, 0u);
}

// Whatever is late, right, wrong or broken: what arrives as a draft is what the other machine would say after this very
// text, and neither end ever breaks the protocol.
RC_GTEST_PROP(RemoteDrafterTest, NeverSaysAnythingAboutAnotherText, ()) {
  const auto slow = *rc::gen::inRange(0, 8);
  Fixture f([slow] { return slow == 0 ? 0 : *rc::gen::inRange(0, slow); });
  std::vector<std::vector<Token>> histories(kSequences);
  size_t arrived = 0;
  const auto steps = *rc::gen::inRange(20, 120);
  for (int step = 0; step < steps; ++step) {
    const SeqId seq = *rc::gen::inRange(0, kSequences);
    std::vector<Token>& history = histories[static_cast<size_t>(seq)];
    const int what = *rc::gen::inRange(0, 20);
    if (history.empty() || what == 0) {
      if (!history.empty()) f.drafter->End(seq, history, true);
      history = Text(static_cast<size_t>(*rc::gen::inRange(1, 600)));
      f.Begin(seq, history);
    } else if (what == 1) {
      f.network->Break();
    } else if (what < 10) {
      // The target agrees for a while, and perhaps not any more.
      const auto added = static_cast<size_t>(*rc::gen::inRange(1, 8));
      const std::vector<Token> right = f.Says(history, added);
      history.insert(history.end(), right.begin(), right.end());
      if (*rc::gen::inRange(0, 3) == 0) history.back() = (history.back() + 1) % 200;
      f.drafter->Commit(seq, {history, static_cast<int>(added)});
    }
    f.Pass(*rc::gen::inRange(0, 12));
    const std::vector<Token> draft = f.Ask(seq, history);
    arrived += draft.size();
    RC_ASSERT(draft == f.Says(history, draft.size()));
  }
  // In the end drafts arrive again, whatever happened.
  for (int i = 0; i < 4; ++i) {
    f.Pass(120);
    for (SeqId seq = 0; seq < kSequences; ++seq) {
      const std::vector<Token>& history = histories[static_cast<size_t>(seq)];
      if (history.empty()) continue;
      const std::vector<Token> draft = f.Ask(seq, history);
      RC_ASSERT(draft == f.Says(history, draft.size()));
      if (i == 3) RC_ASSERT(draft.size() == 16u);
    }
  }
  RC_ASSERT(f.batcher.stats().broken == 0u);
  RC_ASSERT(f.network->failures.empty());
  RC_TAG(arrived > 0 ? "drafts" : "nothing");
}

// Commits by the million do not make either end grow.
TEST(RemoteDrafterTest, DoesNotGrow) {
  const int commits = SoakCommits(100'000);
  Fixture f;
  std::mt19937 random(1);
  std::vector<Token> history;
  long at_first = 0;
  for (int i = 0; i < commits; ++i) {
    if (i % 400 == 0) {
      if (!history.empty()) f.drafter->End(0, history, true);
      history = Text(20 + random() % 300);
      f.Begin(0, history);
      f.engine.ForgetBatches();
    }
    if (i == commits / 4) at_first = HeapBytes();
    const std::vector<Token> right = f.Says(history, 1 + random() % 4);
    history.insert(history.end(), right.begin(), right.end());
    if (random() % 3 == 0) history.back() = static_cast<Token>(random() % 200);
    f.drafter->Commit(0, {history, static_cast<int>(right.size())});
    f.Pass(2 + static_cast<int>(random() % 4));
    f.Ask(0, history);
  }
  EXPECT_GT(f.batcher.stats().sent_tokens, static_cast<uint64_t>(commits));
  EXPECT_LT(HeapBytes() - at_first, 1 << 20);
}

}  // namespace
}  // namespace outrider
