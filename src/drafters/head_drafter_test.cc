#include "drafters/head_drafter.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/fake_engine.h"
#include "engine/fake_head.h"
#include "engine/fake_tokenizer.h"
#include "sampling/fake_filters.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 40;
constexpr int kSequences = 3;
const std::vector<int> kLayers = {1, 3};

// What follows two tokens, for the engine and the head.
Token Follows(Token before, Token last) {
  return (before * 7 + last * 3 + 5) % kVocabulary;
}

EngineInfo SmallEngine(Rollback rollback) {
  EngineInfo info;
  info.n_vocab = kVocabulary;
  info.n_sequences = kSequences;
  info.sequence_length = 400;
  info.max_batch = 64;
  info.micro_batch = 64;
  info.max_outputs = 40;
  info.rollback = rollback;
  return info;
}

HeadInfo SmallHead() {
  HeadInfo info;
  info.layers = kLayers;
  info.n_vocab = kVocabulary;
  info.sequence_length = 400;
  info.max_batch = 24;
  info.max_outputs = 20;
  return info;
}

// An engine and a drafter, driven as the scheduler drives them.
struct Fixture {
  explicit Fixture(int window = 1000, Rollback rollback = Rollback::kDropCells, HeadInfo head_info = SmallHead())
      : engine(SmallEngine(rollback),
               [](std::span<const Token> tokens) {
                 return tokens.size() < 2 ? 0 : Follows(tokens[tokens.size() - 2], tokens.back());
               }),
        head(std::move(head_info), kSequences, Follows),
        drafter("eagle3", draft_head, tokenizer, kSequences, window),
        histories(kSequences) {
    EXPECT_TRUE(engine.ProvideHidden(kLayers).ok());
  }

  std::vector<Token>& History(SeqId seq) { return histories[static_cast<size_t>(seq)]; }

  // Decodes the rows of `seq` that are missing in the engine's memory, in steps of `slice`, the last of them with
  // `draft` behind them. Returns the accepted tokens and the one after them.
  std::vector<Token> Step(SeqId seq, const std::vector<Token>& draft = {}, int slice = 50) {
    std::vector<Token>& history = History(seq);
    for (;;) {
      const Pos first = engine.Length(seq);
      const Pos missing = static_cast<Pos>(history.size()) - first;
      const Pos rows = std::min<Pos>(missing, slice);
      const bool last = rows == missing;
      Batch batch;
      for (Pos pos = first; pos < first + rows; ++pos)
        batch.Add({history[static_cast<size_t>(pos)], pos, seq, last && pos + 1 == first + rows, true});
      for (size_t i = 0; last && i < draft.size(); ++i)
        batch.Add({draft[i], first + rows + static_cast<Pos>(i), seq, true, true});
      if (!draft.empty()) engine.SaveState(seq);
      EXPECT_TRUE(engine.Decode(batch).ok());
      std::vector<Token> added;
      for (int row = rows - 1; last && row < batch.size(); ++row) {
        added.push_back(BestToken(engine.Logits(row)));
        const auto next = static_cast<size_t>(row - rows + 1);
        if (next >= draft.size() || draft[next] != added.back()) break;
      }
      history.insert(history.end(), added.begin(), added.end());
      const int final_rows = last ? rows + static_cast<int>(added.size()) - 1 : rows;
      drafter.Commit(seq, {history, static_cast<int>(added.size()), {first, final_rows, &engine, 0}});
      if (!last) continue;
      engine.TruncateTo(seq, static_cast<Pos>(history.size()) - 1);
      return added;
    }
  }

  // A request begins; as much as possible of the engine's memory is kept.
  void Begin(SeqId seq, std::vector<Token> prompt, float temperature = 0) {
    const std::vector<Token>& memory = engine.memory(seq);
    const auto same = std::mismatch(memory.begin(), memory.end(), prompt.begin(), prompt.end() - 1);
    engine.TruncateTo(seq, static_cast<Pos>(same.first - memory.begin()));
    History(seq) = std::move(prompt);
    DraftContext context;
    context.sampling.temperature = temperature;
    drafter.Begin(seq, History(seq), context);
  }

  void ReadAll(SeqId seq) {
    while (const int lag = drafter.Lag(seq, History(seq))) drafter.Read(seq, History(seq), std::min(lag, 10));
  }

  Proposal Ask(SeqId seq, int max_tokens, std::vector<Token> given = {}, float p_min = 0) {
    Proposal proposal;
    proposal.seq = seq;
    proposal.history = History(seq);
    proposal.max_tokens = max_tokens;
    proposal.p_min = p_min;
    for (const Token token : given) proposal.draft.tokens.push_back({token, 1.0f, 1});
    Proposal* proposals[] = {&proposal};
    drafter.Propose(proposals);
    return proposal;
  }

  static std::vector<Token> TokensOf(const Proposal& proposal) {
    std::vector<Token> tokens;
    for (const DraftToken& token : proposal.draft.tokens) tokens.push_back(token.token);
    return tokens;
  }

  std::vector<Token> Draft(SeqId seq, int max_tokens, std::vector<Token> given = {}) {
    return TokensOf(Ask(seq, max_tokens, std::move(given)));
  }

  // What follows `tokens`.
  static std::vector<Token> Right(std::vector<Token> tokens, int count) {
    std::vector<Token> next;
    for (int i = 0; i < count; ++i) {
      next.push_back(Follows(tokens[tokens.size() - 2], tokens.back()));
      tokens.push_back(next.back());
    }
    return next;
  }

  // All rows of the head's memory that have states of the target belong to the history, in this order.
  void ExpectSoundMemory(SeqId seq) {
    const std::vector<Token>& history = History(seq);
    size_t at = 1;
    for (const FakeHead::Row& row : head.memory(seq)) {
      if (!row.from_target) break;
      while (at < history.size() && (history[at - 1] != row.before || history[at] != row.last)) ++at;
      ASSERT_LT(at++, history.size()) << "a row of another history";
    }
  }

  FakeEngine engine;
  FakeHead head;
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  DraftHead draft_head{head, filters, kVocabulary};
  HeadDrafter drafter;
  std::vector<std::vector<Token>> histories;
};

std::vector<Token> Numbers(Token first, int count) {
  std::vector<Token> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back((first + i * i) % kVocabulary);
  return numbers;
}

TEST(HeadDrafterTest, DraftsWhatItsHeadSays) {
  Fixture f;
  f.Begin(1, {1, 2, 3});
  EXPECT_TRUE(f.Draft(1, 4).empty()) << "no row is known yet";
  f.Step(1);
  EXPECT_EQ(f.Draft(1, 4), Fixture::Right(f.History(1), 4));
  EXPECT_EQ(f.head.memory(1).size(), 6u) << "three rows with states of the target, and three drafted ones";
}

TEST(HeadDrafterTest, ReplacesItsOwnStatesByTheTargets) {
  Fixture f;
  f.Begin(0, {1, 2, 3});
  f.Step(0);
  std::vector<Token> draft = f.Draft(0, 4);
  draft[2] = (draft[2] + 1) % kVocabulary;  // two are accepted
  EXPECT_EQ(f.Step(0, draft).size(), 3u);
  const int rows = f.head.rows();
  EXPECT_EQ(f.Draft(0, 1), Fixture::Right(f.History(0), 1));
  EXPECT_EQ(f.head.rows() - rows, 4) << "the last row of before and those of three new states";
  for (const FakeHead::Row& row : f.head.memory(0)) EXPECT_TRUE(row.from_target);
  f.ExpectSoundMemory(0);
}

TEST(HeadDrafterTest, AnswersTheSameQuestionTwice) {
  Fixture f;
  f.Begin(0, {1, 2, 3});
  f.Step(0);
  const std::vector<Token> first = f.Draft(0, 5);
  EXPECT_EQ(f.Draft(0, 5), first);
  EXPECT_EQ(f.Draft(0, 5), first);
}

TEST(HeadDrafterTest, ContinuesAnotherDraftersTokens) {
  Fixture f;
  f.Begin(0, {1, 2, 3});
  f.Step(0);
  std::vector<Token> all = f.History(0), expected = {9, 8};
  all.insert(all.end(), {9, 8});
  for (const Token token : Fixture::Right(all, 3)) expected.push_back(token);
  EXPECT_EQ(f.Draft(0, 5, {9, 8}), expected);
  EXPECT_EQ(f.Draft(0, 2, {9, 8}), (std::vector<Token>{9, 8})) << "no room for more";
  const std::vector<Token> many(HeadDrafter::kMaxGiven + 1, 7);
  EXPECT_EQ(f.Draft(0, 20, many), many) << "reading them would take longer than a draft";
}

TEST(HeadDrafterTest, DraftsForAllSequencesInOneDecodeEach) {
  Fixture f;
  for (const SeqId seq : {0, 2}) {
    f.Begin(seq, {seq + 4, 9});
    f.Step(seq);
  }
  Proposal a, b;
  a.seq = 2, a.history = f.History(2), a.max_tokens = 3;
  b.seq = 0, b.history = f.History(0), b.max_tokens = 2;
  Proposal* proposals[] = {&a, &b};
  f.drafter.Propose(proposals);
  EXPECT_EQ(Fixture::TokensOf(a), Fixture::Right(f.History(2), 3));
  EXPECT_EQ(Fixture::TokensOf(b), Fixture::Right(f.History(0), 2));
  EXPECT_EQ(f.head.decodes(), 3);
}

TEST(HeadDrafterTest, StopsWhereItIsUnsure) {
  Fixture f;
  f.Begin(0, {1, 2, 3}, 1.0f);
  f.Step(0);
  const Proposal sure = f.Ask(0, 4, {}, 0.9f);
  EXPECT_EQ(sure.draft.size(), 4);
  EXPECT_GT(sure.draft.tokens[0].confidence, 0.99f);
  EXPECT_TRUE(f.Ask(0, 4, {}, 1.01f).draft.empty());
}

TEST(HeadDrafterTest, ReadsALongPromptInSlices) {
  Fixture f;
  f.Begin(0, Numbers(3, 90));
  f.Step(0);
  EXPECT_EQ(f.drafter.Lag(0, f.History(0)), 90);
  EXPECT_TRUE(f.Draft(0, 4).empty());
  f.drafter.Read(0, f.History(0), 30);
  EXPECT_EQ(f.drafter.Lag(0, f.History(0)), 60);
  f.ReadAll(0);
  EXPECT_EQ(f.Draft(0, 4), Fixture::Right(f.History(0), 4));
  f.ExpectSoundMemory(0);
}

TEST(HeadDrafterTest, KeepsTheLastStatesOfALongPrompt) {
  Fixture f(/*window=*/20);
  f.Begin(0, Numbers(3, 90));
  f.Step(0, {}, 7);
  EXPECT_EQ(f.drafter.Lag(0, f.History(0)), 20);
  f.ReadAll(0);
  EXPECT_EQ(f.Draft(0, 4), Fixture::Right(f.History(0), 4));
  f.ExpectSoundMemory(0);
}

// The second request goes on with the text of the first: its rows are in both memories.
TEST(HeadDrafterTest, KeepsThePrefixOfAnEarlierRequest) {
  Fixture f;
  f.Begin(0, Numbers(3, 30));
  f.Step(0);
  f.ReadAll(0);
  f.Step(0, f.Draft(0, 3));
  f.Draft(0, 3);
  std::vector<Token> prompt = f.History(0);
  prompt.insert(prompt.end(), {1, 2, 3, 4});
  f.Begin(0, prompt);
  f.Step(0);
  EXPECT_EQ(f.drafter.Lag(0, f.History(0)), 0);
  EXPECT_EQ(f.Draft(0, 3), Fixture::Right(f.History(0), 3));
  EXPECT_EQ(f.head.memory(0).size(), f.History(0).size() - 1 + 2) << "no row is missing";
  f.ExpectSoundMemory(0);
}

TEST(HeadDrafterTest, DropsRowsOfAnotherHistory) {
  Fixture f;
  f.Begin(0, Numbers(3, 30));
  f.Step(0);
  f.ReadAll(0);
  f.Draft(0, 3);
  std::vector<Token> prompt = Numbers(3, 30);
  prompt[20] = (prompt[20] + 1) % kVocabulary;
  f.Begin(0, prompt);
  f.Step(0);
  EXPECT_EQ(f.Draft(0, 3), Fixture::Right(f.History(0), 3));
  f.ExpectSoundMemory(0);
}

// A slot was restored, or the request is in another slot than the one that it continues: no state of the prefix comes.
TEST(HeadDrafterTest, DraftsWithoutThePrefixWhoseStatesNeverCame) {
  Fixture f;
  std::vector<Token> prompt = Numbers(3, 30);
  Batch batch;
  for (Pos pos = 0; pos < 29; ++pos) batch.Add({prompt[static_cast<size_t>(pos)], pos, 0, false});
  ASSERT_TRUE(f.engine.Decode(batch).ok());
  f.Begin(0, prompt);
  EXPECT_TRUE(f.Draft(0, 3).empty());
  f.Step(0);
  EXPECT_EQ(f.Draft(0, 3), Fixture::Right(f.History(0), 3));
  EXPECT_EQ(f.head.memory(0)[0], (FakeHead::Row{prompt[29], f.History(0)[30], true}));
}

TEST(HeadDrafterTest, IsSilentWithoutTheLastState) {
  Fixture f;
  f.Begin(0, {1, 2, 3});
  f.Step(0);
  // A step without hidden states, as if the request did not allow this drafter.
  Batch batch;
  batch.Add({f.History(0).back(), 3, 0, true});
  ASSERT_TRUE(f.engine.Decode(batch).ok());
  f.History(0).push_back(BestToken(f.engine.Logits(0)));
  f.drafter.Commit(0, {f.History(0), 1, {}});
  EXPECT_TRUE(f.Draft(0, 3).empty());
  f.Step(0);
  EXPECT_EQ(f.Draft(0, 3), Fixture::Right(f.History(0), 3));
}

TEST(HeadDrafterTest, AFailureCostsDraftsOnly) {
  Fixture f;
  f.Begin(0, {1, 2, 3});
  f.Step(0);
  f.head.FailWhile([] { return true; });
  EXPECT_TRUE(f.Draft(0, 3).empty());
  f.head.FailWhile(nullptr);
  EXPECT_TRUE(f.Draft(0, 3).empty()) << "the states are lost";
  f.Step(0);
  EXPECT_EQ(f.Draft(0, 3), Fixture::Right(f.History(0), 3));
}

TEST(HeadDrafterTest, SaysWhatItDrewFrom) {
  Fixture f;
  f.Begin(0, {1, 2, 3});
  DraftContext context;
  context.sampling.temperature = 1;
  context.distributions = true;
  f.drafter.Begin(0, f.History(0), context);
  f.Step(0);
  const Proposal proposal = f.Ask(0, 3, {7});
  ASSERT_EQ(proposal.draft.distributions.size(), proposal.draft.tokens.size());
  ASSERT_GE(proposal.draft.size(), 2);
  EXPECT_EQ(proposal.draft.distributions[0].size(), 1u) << "a token of another drafter";
  EXPECT_GT(proposal.draft.distributions[1].size(), 1u);
}

TEST(HeadDrafterTest, IsMadeFromAHead) {
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  FakeEngine engine(SmallEngine(Rollback::kDropCells), FakeEngine::Hashing(kVocabulary));
  DrafterEnvironment environment{kSequences, tokenizer};
  environment.target = &engine;
  for (const char* name : {"eagle3", "mtp"}) {
    const auto without = MakeDrafter({name, {}}, environment);
    EXPECT_EQ(without.status().code(), StatusCode::kInvalidArgument);
  }
  FakeHead head(SmallHead(), kSequences, Follows);
  const DraftHead given{head, filters, kVocabulary};
  environment.eagle3 = &given;
  const auto made = MakeDrafter({"eagle3", {}}, environment);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ((*made)->traits().name, "eagle3");
  HeadInfo info = SmallHead();
  info.layers = {7};
  FakeHead of_other_layers(info, kSequences, Follows);
  const DraftHead other{of_other_layers, filters, kVocabulary};
  environment.mtp = &other;
  EXPECT_EQ(MakeDrafter({"mtp", {}}, environment).status().code(), StatusCode::kUnsupported) << "one reads already";
}

// Whatever happens, drafts are made from the right states: with them the head is always right.
TEST(HeadDrafterTest, IsNeverGivenAWrongState) {
  for (const Rollback rollback : {Rollback::kDropCells, Rollback::kReplay}) {
    for (unsigned seed = 0; seed < 60; ++seed) {
      std::mt19937 random(seed);
      const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
      HeadInfo info = SmallHead();
      info.max_outputs = 1 + below(20);
      Fixture f(5 + below(60), rollback, info);
      int drafted = 0;
      for (SeqId seq = 0; seq < kSequences; ++seq) f.Begin(seq, Numbers(seq, 2 + below(50)));
      for (int i = 0; i < 150; ++i) {
        const SeqId seq = below(kSequences);
        std::vector<Token>& history = f.History(seq);
        if (below(12) == 0 || history.size() > 300) {  // another request, with some of the text of the last
          history.resize(2 + static_cast<size_t>(below(static_cast<int>(history.size()) - 1)));
          std::vector<Token> prompt = history;
          for (int n = below(30); n > 0; --n) prompt.push_back(below(kVocabulary));
          f.Begin(seq, prompt);
        }
        if (below(3) > 0) f.ReadAll(seq);
        std::vector<Token> given;
        for (int n = below(8) - 5; n > 0; --n) given.push_back(below(kVocabulary));
        const size_t own_from = given.size();
        std::vector<Token> draft = f.Draft(seq, 6, given), all = history;
        if (draft.size() > own_from) {
          all.insert(all.end(), draft.begin(), draft.begin() + static_cast<std::ptrdiff_t>(own_from));
          const std::vector<Token> own(draft.begin() + static_cast<std::ptrdiff_t>(own_from), draft.end());
          ASSERT_EQ(own, Fixture::Right(all, static_cast<int>(own.size())));
          drafted += static_cast<int>(own.size());
        }
        f.ExpectSoundMemory(seq);
        if (!draft.empty() && below(3) == 0) draft[static_cast<size_t>(below(static_cast<int>(draft.size())))] = 0;
        f.Step(seq, draft, 1 + below(20));
      }
      EXPECT_GT(drafted, 100);
    }
  }
}

}  // namespace
}  // namespace outrider
