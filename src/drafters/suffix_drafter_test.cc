#include "drafters/suffix_drafter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string_view>

#include "drafters/lookup_test_util.h"

namespace outrider {
namespace {

using Text = std::vector<Token>;

Text Tokens(std::string_view text) {
  return {text.begin(), text.end()};
}

std::string String(const Draft& draft) {
  std::string text;
  for (const DraftToken& drafted : draft.tokens) text += static_cast<char>(drafted.token);
  return text;
}

DraftContext OwnedBy(std::string owner) {
  DraftContext context;
  context.owner = std::move(owner);
  return context;
}

struct Limits {
  int max_tokens = 8;
  float p_min = 0;
  double min_survival = 0;
};

Draft Ask(SuffixDrafter& drafter, const Text& history, const Limits& limits = {}, Draft begun = {}, SeqId seq = 0) {
  Proposal proposal{seq, history, limits.max_tokens, limits.p_min, limits.min_survival, std::move(begun)};
  Proposal* proposals[] = {&proposal};
  drafter.Propose(proposals);
  return proposal.draft;
}

// What a new drafter says after `text`.
Draft After(std::string_view text, const Limits& limits = {}) {
  SuffixDrafter drafter(1, {});
  const Text history = Tokens(text);
  drafter.Begin(0, history, {});
  return Ask(drafter, history, limits);
}

void Finish(SuffixDrafter& drafter, const std::string& owner, std::string_view text, bool complete = true) {
  const Text history = Tokens(text);
  drafter.Begin(0, history, OwnedBy(owner));
  drafter.End(0, history, complete);
}

TEST(SuffixDrafterTest, CopiesWhatFollowed) {
  EXPECT_EQ(String(After("The quick brown fox jumps. The quick ")), "brown fo");
  EXPECT_EQ(String(After("abcdefgh")), "") << "nothing is drafted where nothing repeats";
  EXPECT_EQ(String(After("")), "");
}

TEST(SuffixDrafterTest, FollowsAPassageTokenByToken) {
  SuffixDrafter drafter(1, {});
  const Text text = Tokens("int count = 0; for (;;) ++count; // again: int count = 0; for (;;) ++count;");
  const size_t copy = 46;
  drafter.Begin(0, std::span(text).first(40), {});
  for (size_t length = 41; length + 8 <= text.size(); ++length) {
    const Text history(text.begin(), text.begin() + static_cast<ptrdiff_t>(length));
    drafter.Commit(0, {history, 1});
    if (length < copy) continue;
    EXPECT_EQ(String(Ask(drafter, history)), std::string(text.begin() + static_cast<ptrdiff_t>(length),
                                                         text.begin() + static_cast<ptrdiff_t>(length) + 8));
  }
}

TEST(SuffixDrafterTest, RepeatsTheFormOfRecords) {
  EXPECT_EQ(String(After(R"({"name":"ann","age":1},{"name":"bob","age":2},{"name":"cid",)")), R"("age":2})");
}

TEST(SuffixDrafterTest, GoesOnRepeatingPastTheEnd) {
  EXPECT_EQ(String(After("xyzabcabca")), "bcabcabc");
}

TEST(SuffixDrafterTest, TheMajorityWinsAmongEqualMatches) {
  EXPECT_EQ(String(After("-k=1-k=1-k=1-k=2-k=", {1})), "1");
}

TEST(SuffixDrafterTest, TheLongestMatchWinsOverMany) {
  EXPECT_EQ(String(After("a=1 b=1 c=1 d=1 total=2 e=1 total=", {1})), "2");
}

TEST(SuffixDrafterTest, IsSurerOfLongerMatchesAndOfAgreement) {
  const auto confidence = [](std::string_view text) { return After(text, {1}).tokens.at(0).confidence; };
  EXPECT_LT(confidence("xab..yxa"), confidence("xyzab..wxyza")) << "longer";
  EXPECT_LT(confidence("=1.=2.="), confidence("=1.=1.=")) << "unanimous";
  EXPECT_LT(confidence("=1-=1+="), confidence("=1-=1+=1*=")) << "more often";
  EXPECT_LT(confidence("a1,b1,a"), 0.5f) << "a match of one token";
  EXPECT_GT(confidence("The quick brown fox. The quick brown f"), 0.8f);
}

TEST(SuffixDrafterTest, KeepsToItsLimits) {
  const std::string_view text = "abcdefghijklmnop, cdefgh";
  EXPECT_EQ(After(text, {3}).size(), 3);
  EXPECT_EQ(After(text, {0}).size(), 0);
  EXPECT_EQ(After(text, {-1}).size(), 0);

  const Draft free = After(text, {8});
  ASSERT_EQ(free.size(), 8);
  EXPECT_EQ(After(text, {8, free.tokens[0].confidence + 0.01f}).size(), 0);
  EXPECT_EQ(After(text, {8, free.tokens[0].confidence}).size(), 8) << "it is surer of each next token";
  const double of_three = free.tokens[0].confidence * double{free.tokens[1].confidence} * free.tokens[2].confidence;
  EXPECT_EQ(After(text, {8, 0, of_three * 0.999}).size(), 3);
}

TEST(SuffixDrafterTest, ContinuesTheDraftOfAnother) {
  SuffixDrafter drafter(1, {});
  Finish(drafter, "", "remembered: one two three");
  const Text history = Tokens("said: red green blue. Now ");
  drafter.Begin(0, history, {});
  Draft begun;
  for (const char letter : std::string_view("gre")) begun.tokens.push_back({letter, 0.9f, 3});
  Draft draft = Ask(drafter, history, {8}, begun);
  EXPECT_EQ(String(draft), "green bl");
  EXPECT_EQ(draft.tokens[2].source, 3);
  EXPECT_EQ(draft.tokens[3].source, kNoDrafter);

  begun.tokens.clear();
  for (const char letter : std::string_view("one")) begun.tokens.push_back({letter, 0.9f, 3});
  begun.distributions.resize(3);
  draft = Ask(drafter, history, {8}, begun);
  EXPECT_EQ(String(draft), "one two ");
  ASSERT_EQ(draft.distributions.size(), 8u);
  EXPECT_EQ(draft.distributions[3].at(0).token, ' ');

  EXPECT_EQ(Ask(drafter, history, {8, 0, 0.9}, begun).size(), 3) << "survival counts from the draft's beginning";
  EXPECT_EQ(Ask(drafter, history, {2}, begun).size(), 3) << "what others drafted is left alone";
}

TEST(SuffixDrafterTest, RemembersPastRequestsOfTheSameOwnerOnly) {
  SuffixDrafter drafter(2, {});
  Finish(drafter, "ann", "The capital of France is Paris.");
  const Text question = Tokens("of F");
  drafter.Begin(0, question, OwnedBy("ann"));
  drafter.Begin(1, question, OwnedBy("bob"));
  EXPECT_EQ(String(Ask(drafter, question)), "rance is");
  EXPECT_EQ(String(Ask(drafter, question, {}, {}, 1)), "");
}

TEST(SuffixDrafterTest, RemembersNothingOfWhatWasCutShort) {
  SuffixDrafter drafter(1, {});
  Finish(drafter, "", "The capital of France is Paris.", /*complete=*/false);
  const Text question = Tokens("of F");
  drafter.Begin(0, question, {});
  EXPECT_EQ(String(Ask(drafter, question)), "");
  EXPECT_EQ(drafter.remembered_bytes(), 0u);
}

TEST(SuffixDrafterTest, LearnsWhileASequenceRuns) {
  SuffixDrafter drafter(2, {});
  const Text question = Tokens("of F");
  drafter.Begin(1, question, {});
  Finish(drafter, "", "The capital of France is Paris.");
  EXPECT_EQ(String(Ask(drafter, question, {}, {}, 1)), "rance is");
}

TEST(SuffixDrafterTest, RememberingCanBeSwitchedOff) {
  SuffixDrafter drafter(1, {.remember = false});
  Finish(drafter, "", "The capital of France is Paris.");
  const Text question = Tokens("of F");
  drafter.Begin(0, question, {});
  EXPECT_EQ(String(Ask(drafter, question)), "");
  EXPECT_EQ(drafter.remembered_bytes(), 0u);
}

TEST(SuffixDrafterTest, BeginForgetsWhatRanThereBefore) {
  SuffixDrafter drafter(1, {.remember = false});
  drafter.Begin(0, Tokens("secret: 1234."), {});
  const Text other = Tokens("secret: ");
  drafter.Begin(0, other, {});
  EXPECT_EQ(String(Ask(drafter, other)), "");
}

TEST(SuffixDrafterTest, HasParameters) {
  EXPECT_EQ((*MakeFromKind(SuffixKind(), ""))->traits().name, "suffix");
  EXPECT_TRUE(MakeFromKind(SuffixKind(), "remember=off,memory_mib=8").ok());
  EXPECT_FALSE(MakeFromKind(SuffixKind(), "memory_mib=0").ok());
  EXPECT_FALSE(MakeFromKind(SuffixKind(), "depth=3").ok());
}

// Random requests of several owners in several sequences: limits are kept, nothing crosses from one owner to another,
// and memory stays bounded, whatever the texts are.
RC_GTEST_PROP(SuffixDrafterTest, KeepsItsPromisesOnAnyHistory, ()) {
  constexpr int kSequences = 3;
  constexpr size_t kBytes = size_t{1} << 20;
  SuffixDrafter drafter(kSequences, {.memory_bytes = kBytes});
  std::array<Text, kSequences> histories;
  std::array<int, kSequences> owners{};
  // Each owner has an alphabet of its own; every text may have borders and other odd tokens.
  const auto text_of = [](int owner) {
    return *rc::gen::container<Text>(rc::gen::weightedOneOf<Token>(
        {{20, rc::gen::inRange<Token>(owner * 10, owner * 10 + 4)}, {1, rc::gen::element<Token>(-1, INT32_MIN, -7)}}));
  };
  for (const int seq : *rc::gen::container<std::vector<int>>(60, rc::gen::inRange(0, kSequences))) {
    Text& history = histories[static_cast<size_t>(seq)];
    int& owner = owners[static_cast<size_t>(seq)];
    if (*rc::gen::inRange(0, 4) == 0) {
      drafter.End(seq, history, *rc::gen::arbitrary<bool>());
      owner = *rc::gen::inRange(0, 3);
      history = text_of(owner);
      drafter.Begin(seq, history, OwnedBy(std::to_string(owner)));
    } else {
      const Text more = text_of(owner);
      history.insert(history.end(), more.begin(), more.end());
      drafter.Commit(seq, {history, static_cast<int>(more.size())});
    }
    const Limits limits{*rc::gen::inRange(0, 40), 0.3f, 0.01};
    Draft begun;
    for (const Token token : text_of(owner)) begun.tokens.push_back({token, 1, 0});
    const size_t n_begun = begun.tokens.size();
    const Draft draft = Ask(drafter, history, limits, begun, seq);
    RC_ASSERT(draft.tokens.size() <= std::max(n_begun, static_cast<size_t>(limits.max_tokens)));
    for (size_t i = n_begun; i < draft.tokens.size(); ++i) {
      RC_ASSERT(draft.tokens[i].token / 10 == owner);
      RC_ASSERT(draft.tokens[i].confidence >= 0.3f);
      RC_ASSERT(draft.tokens[i].confidence < 1.0f);
    }
    RC_ASSERT(drafter.remembered_bytes() <= kBytes);
  }
}

}  // namespace
}  // namespace outrider
