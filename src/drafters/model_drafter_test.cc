#include "drafters/model_drafter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "sampling/fake_filters.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 258;

EngineInfo SmallEngine(Pos sequence_length = 200) {
  EngineInfo info;
  info.n_vocab = kVocabulary;
  info.n_sequences = 3;
  info.sequence_length = sequence_length;
  info.max_batch = 64;
  info.micro_batch = 64;
  info.max_outputs = 3;
  return info;
}

struct Fixture {
  explicit Fixture(FakeEngine::Script its_script = FakeEngine::Hashing(200), Pos sequence_length = 200, int window = 0)
      : script(its_script),
        engine(SmallEngine(sequence_length), std::move(its_script)),
        drafter(model, 3, window, kVocabulary) {}

  void Begin(SeqId seq, const std::vector<Token>& history) {
    DraftContext context;
    context.sampling.temperature = 0;
    drafter.Begin(seq, history, context);
  }

  std::vector<Token> Ask(SeqId seq, const std::vector<Token>& history, int max_tokens, std::vector<Token> given = {},
                         float p_min = 0) {
    Proposal proposal;
    proposal.seq = seq;
    proposal.history = history;
    proposal.max_tokens = max_tokens;
    proposal.p_min = p_min;
    for (Token token : given) proposal.draft.tokens.push_back({token, 1.0f});
    Proposal* proposals[] = {&proposal};
    drafter.Propose(proposals);
    std::vector<Token> tokens;
    for (const DraftToken& token : proposal.draft.tokens) tokens.push_back(token.token);
    return tokens;
  }

  // What the draft model says after `history`, one token after the other.
  std::vector<Token> Says(std::vector<Token> history, int count) const {
    std::vector<Token> tokens;
    for (int i = 0; i < count; ++i) {
      tokens.push_back(script(history));
      history.push_back(tokens.back());
    }
    return tokens;
  }

  FakeEngine::Script script;
  FakeEngine engine;
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  DraftModel model{engine, tokenizer, filters};
  ModelDrafter drafter;
};

TEST(ModelDrafterTest, SaysWhatItsModelSays) {
  Fixture f;
  const std::vector<Token> history = {1, 2, 3};
  f.Begin(0, history);
  EXPECT_EQ(f.Ask(0, history, 5), f.Says(history, 5));
}

TEST(ModelDrafterTest, TakesBackWhatWasWrongAndReadsOnlyWhatIsNew) {
  Fixture f;
  std::vector<Token> history = {1, 2, 3};
  f.Begin(0, history);
  const std::vector<Token> draft = f.Ask(0, history, 4);
  history.insert(history.end(), {draft[0], draft[1], 99});  // two right, then something else
  const size_t before = f.engine.batches().size();
  EXPECT_EQ(f.Ask(0, history, 2), f.Says(history, 2));
  EXPECT_EQ(f.engine.batches()[before].size(), 1) << "only the token that it did not predict";
}

TEST(ModelDrafterTest, ContinuesAnotherDraftersTokens) {
  Fixture f;
  const std::vector<Token> history = {1, 2, 3};
  f.Begin(0, history);
  std::vector<Token> expected = {50, 51};
  std::vector<Token> all = {1, 2, 3, 50, 51};
  for (Token token : f.Says(all, 3)) expected.push_back(token);
  EXPECT_EQ(f.Ask(0, history, 5, {50, 51}), expected);
}

TEST(ModelDrafterTest, DraftsForAllSequencesInOneBatchEach) {
  Fixture f;
  const std::vector<Token> first = {1, 2}, second = {7, 8, 9};
  f.Begin(0, first);
  f.Begin(2, second);
  Proposal a, b;
  a.seq = 2, a.history = second, a.max_tokens = 3;
  b.seq = 0, b.history = first, b.max_tokens = 3;
  Proposal* proposals[] = {&a, &b};
  f.drafter.Propose(proposals);
  ASSERT_EQ(a.draft.size(), 3);
  ASSERT_EQ(b.draft.size(), 3);
  EXPECT_EQ(b.draft.tokens[2].token, f.Says(first, 3)[2]);
  EXPECT_EQ(a.draft.tokens[2].token, f.Says(second, 3)[2]);
  EXPECT_EQ(f.engine.batches().size(), 3u);
}

TEST(ModelDrafterTest, StopsWhereItIsUnsureAndAtTheEndOfTheText) {
  Fixture sure;
  sure.Begin(0, {{1, 2}});
  EXPECT_TRUE(sure.Ask(0, {1, 2}, 4, {}, 0.999f).empty()) << "the fake model is 98.8 % sure";
  EXPECT_EQ(sure.Ask(0, {1, 2}, 4, {}, 0.9f).size(), 4u);

  Fixture ending([](std::span<const Token> tokens) { return tokens.size() < 5 ? 65 : FakeTokenizer::kEos; });
  ending.Begin(0, {{1, 2}});
  EXPECT_EQ(ending.Ask(0, {1, 2}, 8), (std::vector<Token>{65, 65, 65})) << "the end is the target's business";
}

TEST(ModelDrafterTest, ReadsAPromptInSlicesAndKeepsASharedPrefix) {
  Fixture f;
  std::vector<Token> history(100, 5);
  f.Begin(0, history);
  EXPECT_EQ(f.drafter.Lag(0, history), 100);
  f.drafter.Read(0, history, 60);
  EXPECT_EQ(f.drafter.Lag(0, history), 40);
  f.drafter.Read(0, history, 60);
  EXPECT_EQ(f.drafter.Lag(0, history), 0);
  EXPECT_EQ(f.engine.Length(0), 99) << "the last token is decoded with the draft";

  history.resize(120, 6);  // the next turn of the same conversation
  f.Begin(0, history);
  EXPECT_EQ(f.drafter.Lag(0, history), 21);
  f.drafter.Read(0, history, 21);
  EXPECT_EQ(f.Ask(0, history, 2), f.Says(history, 2));

  const std::vector<Token> other = {9, 9, 9};  // a history that shrinks
  f.Begin(0, other);
  EXPECT_EQ(f.Ask(0, other, 2), f.Says(other, 2));
}

TEST(ModelDrafterTest, AFailingEngineCostsTheDraftOnly) {
  Fixture f;
  const std::vector<Token> history = {1, 2, 3};
  f.Begin(0, history);
  bool failing = true;
  f.engine.FailWhile([&](const Batch&) { return failing; });
  EXPECT_TRUE(f.Ask(0, history, 3).empty());
  failing = false;
  EXPECT_EQ(f.Ask(0, history, 3), f.Says(history, 3));
}

// Such as tokens that stand for rows of a picture: the target's vocabulary may be larger.
TEST(ModelDrafterTest, TokensOutsideItsVocabularyDoNotSilenceIt) {
  Fixture f;
  const std::vector<Token> history = {1, kVocabulary + 5, 3};
  f.Begin(0, history);
  EXPECT_EQ(f.Ask(0, history, 3), f.Says({1, kVocabulary - 1, 3}, 3));
  f.drafter.Read(0, history, 3);
  const size_t before = f.engine.batches().size();
  f.Ask(0, history, 1);
  EXPECT_LE(f.engine.batches()[before].size(), 1) << "it is not read again";
  const std::vector<Token> readable = {1, 2, 3};
  f.Begin(0, readable);
  EXPECT_EQ(f.Ask(0, readable, 2), f.Says(readable, 2)) << "the replaced token is not taken for another one";
}

TEST(ModelDrafterTest, DistributionsStandBesideTheirTokens) {
  Fixture f;
  const std::vector<Token> history = {1, 2, 3};
  DraftContext context;
  context.distributions = true;
  f.drafter.Begin(0, history, context);
  Proposal proposal;
  proposal.seq = 0, proposal.history = history, proposal.max_tokens = 4;
  proposal.draft.tokens = {{50, 1.0f}, {51, 1.0f}};
  Proposal* proposals[] = {&proposal};
  f.drafter.Propose(proposals);
  ASSERT_EQ(proposal.draft.distributions.size(), proposal.draft.tokens.size());
  EXPECT_EQ(proposal.draft.distributions[1].size(), 1u);
  EXPECT_EQ(proposal.draft.distributions[1][0].token, 51);
  EXPECT_GT(proposal.draft.distributions[2].size(), 0u);
}

TEST(ModelDrafterTest, AWindowThatMovesOnIsReadAgainInSlices) {
  Fixture f(FakeEngine::Hashing(200), 200, 60);
  std::vector<Token> history(58, 5);
  f.Begin(0, history);
  f.drafter.Read(0, history, 100);
  const size_t before = f.engine.batches().size();
  EXPECT_TRUE(f.Ask(0, history, 4).empty()) << "no room: the window moves on";
  EXPECT_EQ(f.engine.batches().size(), before) << "and nothing is read in one go";
  while (f.drafter.Lag(0, history) > 0) f.drafter.Read(0, history, 10);
  EXPECT_EQ(f.Ask(0, history, 4).size(), 4u);
  for (size_t i = before; i < f.engine.batches().size(); ++i) EXPECT_LE(f.engine.batches()[i].size(), 16);
}

// Any history, any window: the fake engine aborts on a wrong position, a missing token or a full context.
RC_GTEST_PROP(ModelDrafterTest, FollowsAnyHistoryThroughAnyWindow, ()) {
  Fixture f(FakeEngine::Hashing(200), *rc::gen::inRange(8, 60), *rc::gen::inRange(0, 40));
  std::vector<Token> history =
      *rc::gen::container<std::vector<Token>>(*rc::gen::inRange<size_t>(1, 80), rc::gen::inRange(0, 200));
  f.Begin(1, history);
  for (int step = 0; step < 12; ++step) {
    if (*rc::gen::arbitrary<bool>()) f.drafter.Read(1, history, *rc::gen::inRange(1, 100));
    const int max_tokens = *rc::gen::inRange(0, 12);
    const std::vector<Token> draft = f.Ask(1, history, max_tokens);
    RC_ASSERT(static_cast<int>(draft.size()) <= max_tokens);
    const size_t right = *rc::gen::inRange<size_t>(0, draft.size() + 1);
    history.insert(history.end(), draft.begin(), draft.begin() + static_cast<std::ptrdiff_t>(right));
    history.push_back(*rc::gen::inRange(0, 200));
  }
}

class NamedTokenizer : public FakeTokenizer {
 public:
  NamedTokenizer(int size, Token odd, uint64_t fingerprint) : size_(size), odd_(odd), fingerprint_(fingerprint) {}
  int vocabulary_size() const override { return size_; }
  std::string Piece(Token token, bool) const override { return token == odd_ ? "odd" : std::to_string(token); }
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  int size_;
  Token odd_;
  uint64_t fingerprint_;
};

TEST(CompareVocabulariesTest, SaysWhatDiffers) {
  const NamedTokenizer target(1000, -1, 1);
  EXPECT_EQ(CompareVocabularies(target, NamedTokenizer(1000, -1, 1)).difference, "");
  const VocabularyMatch padded = CompareVocabularies(target, NamedTokenizer(960, -1, 2));
  EXPECT_EQ(padded.difference, "");
  EXPECT_EQ(padded.common, 960);
  EXPECT_EQ(CompareVocabularies(target, NamedTokenizer(1000, 7, 3)).difference,
            "token 7 is '7' in the target's vocabulary and 'odd' in the draft's");
  EXPECT_EQ(CompareVocabularies(target, NamedTokenizer(400, -1, 4)).difference,
            "the target's vocabulary has 1000 tokens, the draft's 400");
}

}  // namespace
}  // namespace outrider
