#include "drafters/retokenizing_drafter.h"

#include <gtest/gtest.h>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "engine/fake_word_tokenizer.h"
#include "sampling/fake_filters.h"

namespace outrider {
namespace {

// The draft model's tokens are bytes, the target's are words.
class RetokenizingDrafterTest : public testing::Test {
 protected:
  // The draft model continues `text` if the history is a prefix of it; else it ends.
  static Token Recite(const std::string& text, std::span<const Token> history) {
    std::string seen;
    for (const Token token : history) seen += FakeTokenizer().Piece(token, false);
    const size_t at = text.starts_with(seen) ? seen.size() : text.size();
    return at < text.size() ? static_cast<unsigned char>(text[at]) : FakeTokenizer::kEos;
  }

  static EngineInfo Info() {
    EngineInfo info;
    info.n_vocab = 258;
    info.n_sequences = 2;
    info.sequence_length = 2000;
    info.max_batch = 512;
    info.micro_batch = 512;
    info.max_outputs = 2;
    return info;
  }

  std::vector<Token> InWords(const std::string& text) const {
    return words_.Tokenize(text, false, SpecialTokens::kParse);
  }

  Draft Ask(SeqId seq, const std::vector<Token>& history, int max_tokens, const std::vector<Token>& given = {}) {
    Proposal proposal;
    proposal.seq = seq;
    proposal.history = history;
    proposal.max_tokens = max_tokens;
    for (const Token token : given) proposal.draft.tokens.push_back({token, 1.0f});
    Proposal* proposals[] = {&proposal};
    drafter_.Propose(proposals);
    return proposal.draft;
  }

  std::string Text(const Draft& draft) const {
    std::string text;
    for (const DraftToken& token : draft.tokens) text += words_.Piece(token.token, false);
    return text;
  }

  const std::string text_ = "the sea and the seaside and all the rest of it, the whole long way home to the sea";
  const FakeWordTokenizer words_{{"the", " the", " sea", " seaside", " and", " a", " al"}};
  const FakeTokenizer bytes_;
  FakeEngine engine_{Info(), [this](std::span<const Token> history) { return Recite(text_, history); }};
  FakeFilterFactory filters_;
  DraftModel model_{engine_, bytes_, filters_};
  RetokenizingDrafter drafter_{std::make_unique<ModelDrafter>(model_, 2, 0, 258), words_, bytes_, 2};
};

TEST_F(RetokenizingDrafterTest, DraftsTheTargetsTokensOfItsModelsText) {
  const std::vector<Token> history = InWords("the sea");
  drafter_.Begin(0, history, {});
  const Draft draft = Ask(0, history, 12);
  EXPECT_EQ(Text(draft), " and the sea") << "twelve of the draft's tokens";
  EXPECT_EQ(draft.tokens.front().token, InWords(" and").front());
  EXPECT_LT(draft.size(), 12);
}

TEST_F(RetokenizingDrafterTest, FollowsWhatTheTargetSays) {
  std::vector<Token> history = InWords("the");
  drafter_.Begin(0, history, {});
  for (const Token token : InWords(" sea and the seaside and al")) {
    Ask(0, history, 6);
    history.push_back(token);
  }
  EXPECT_EQ(Text(Ask(0, history, 7)), "l the r");
}

TEST_F(RetokenizingDrafterTest, ContinuesAnotherDraftersTokens) {
  const std::vector<Token> history = InWords("the sea"), given = InWords(" and");
  drafter_.Begin(0, history, {});
  EXPECT_EQ(Text(Ask(0, history, 5, given)), " and the");
}

TEST_F(RetokenizingDrafterTest, NeverMoreThanAskedFor) {
  const std::vector<Token> history = InWords("the sea and all");
  drafter_.Begin(0, history, {});
  for (int max_tokens = 0; max_tokens < 9; ++max_tokens) EXPECT_LE(Ask(0, history, max_tokens).size(), max_tokens);
}

TEST_F(RetokenizingDrafterTest, ReadsALongHistoryInSlices) {
  const std::vector<Token> history = InWords(text_.substr(0, 70));
  drafter_.Begin(0, history, {});
  EXPECT_TRUE(Ask(0, history, 4).empty()) << "too far behind";
  int slices = 0;
  while (drafter_.Lag(0, history) > 0) {
    drafter_.Read(0, history, 10);
    ASSERT_LT(++slices, 100);
  }
  EXPECT_GT(slices, 3);
  EXPECT_EQ(Text(Ask(0, history, 4)), text_.substr(70, 4));
}

TEST_F(RetokenizingDrafterTest, AnotherRequestInTheSameSequence) {
  const std::vector<Token> first = InWords("the sea and all"), second = InWords("the sea and");
  drafter_.Begin(0, first, {});
  Ask(0, first, 8);
  drafter_.Begin(0, second, {});
  EXPECT_EQ(Text(Ask(0, second, 4)), " the");
}

TEST_F(RetokenizingDrafterTest, EndsWhereTheDraftModelEnds) {
  const std::vector<Token> history = InWords(text_.substr(text_.size() - 3));
  drafter_.Begin(0, history, {});
  EXPECT_TRUE(Ask(0, history, 4).empty());
}

// The other way round: the draft model's tokens are words, and the last of them change when text is appended.
TEST(RetokenizingDrafterToWordsTest, TheDraftModelsMemoryIsTheHistoryInItsTokens) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words({" inter", "nation", " international", " law", " and", " order", "al", " in"});
  EngineInfo info;
  info.n_vocab = words.vocabulary_size();
  info.n_sequences = 1;
  info.sequence_length = 500;
  info.max_batch = info.micro_batch = 512;
  info.max_outputs = 1;
  FakeEngine engine(info, FakeEngine::Hashing(info.n_vocab));
  FakeFilterFactory filters;
  const DraftModel model{engine, words, filters};
  RetokenizingDrafter drafter(std::make_unique<ModelDrafter>(model, 1, 0, info.n_vocab), bytes, words, 1);

  std::string text = "of";
  const auto history = [&] { return bytes.Tokenize(text, false, SpecialTokens::kParse); };
  drafter.Begin(0, history(), {});
  for (const char* more :
       {" inter", "nation", "al law and ord", "er, in law and order, inter", "national law and ", "x"}) {
    text += more;
    const std::vector<Token> now = history();
    while (drafter.Lag(0, now) > 0) drafter.Read(0, now, 7);
    Proposal proposal;
    proposal.seq = 0;
    proposal.history = now;
    proposal.max_tokens = 1;
    Proposal* proposals[] = {&proposal};
    drafter.Propose(proposals);
    const std::vector<Token> output = words.Tokenize(text, true, SpecialTokens::kParse);
    ASSERT_GE(engine.memory(0).size(), output.size());
    EXPECT_TRUE(std::equal(output.begin(), output.end(), engine.memory(0).begin())) << text;
  }
}

}  // namespace
}  // namespace outrider
