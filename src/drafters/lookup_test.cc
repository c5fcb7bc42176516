#include "drafters/lookup.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "drafters/hash_index.h"
#include "drafters/lookup_test_util.h"
#include "drafters/next_tokens.h"
#include "drafters/per_owner.h"

namespace outrider {
namespace {

// One sequence of CheckPromises.
struct Line {
  std::vector<Token> history;
  std::string owner;
};

void CheckDraft(const Proposal& proposal, int begun, const std::set<Token>& seen) {
  RC_ASSERT(proposal.draft.size() <= std::max(proposal.max_tokens, begun));
  double survival = 1;
  for (int i = 0; i < proposal.draft.size(); ++i) {
    const DraftToken& token = proposal.draft.tokens[static_cast<size_t>(i)];
    survival *= token.confidence;
    if (i < begun) continue;
    RC_ASSERT(seen.contains(token.token));
    RC_ASSERT(token.confidence > 0 && token.confidence < 1);
    RC_ASSERT(token.confidence >= proposal.p_min);
    RC_ASSERT(survival >= proposal.min_survival);
  }
}

std::vector<Token> RandomTokens(int max_size) {
  const int size = *rc::gen::inRange(0, max_size);
  return *rc::gen::container<std::vector<Token>>(static_cast<size_t>(size), rc::gen::inRange(0, 4));
}

}  // namespace

void CheckPromises(const DrafterKind& kind, const std::string& parameters) {
  constexpr int kSequences = 3;
  auto made = MakeFromKind(kind, parameters, kSequences);
  RC_ASSERT(made.ok());
  Drafter& drafter = **made;
  std::vector<Line> lines(kSequences);
  std::map<std::string, std::set<Token>> seen;  // by owner

  const int n_events = *rc::gen::inRange(1, 60);
  for (int event = 0; event < n_events; ++event) {
    const SeqId seq = *rc::gen::inRange(0, kSequences);
    Line& line = lines[static_cast<size_t>(seq)];
    const int action = *rc::gen::inRange(0, 8);
    if (action == 0) {
      line.owner = *rc::gen::element<std::string>("", "anna", "bert");
      // Owners use different tokens, so that a leak would be found.
      const Token offset = line.owner.empty() ? 0 : line.owner == "anna" ? 100 : 200;
      line.history = RandomTokens(40);
      for (Token& token : line.history) token += offset;
      DraftContext context;
      context.owner = line.owner;
      drafter.Begin(seq, line.history, context);
    } else if (action == 1) {
      drafter.End(seq, line.history, *rc::gen::arbitrary<bool>());
      line.history.clear();
    } else if (action <= 4) {
      const Token offset = line.owner.empty() ? 0 : line.owner == "anna" ? 100 : 200;
      const std::vector<Token> added = RandomTokens(10);
      for (const Token token : added) line.history.push_back(token + offset);
      drafter.Commit(seq, {line.history, static_cast<int>(added.size())});
    } else {
      Proposal proposal{seq, line.history, *rc::gen::inRange(0, 12), 0, 0, {}};
      proposal.p_min = *rc::gen::element(0.0f, 0.5f, 0.9f);
      proposal.min_survival = *rc::gen::element(0.0, 0.1, 0.8);
      const int begun = *rc::gen::inRange(0, 3);
      for (int i = 0; i < begun && !line.history.empty(); ++i) {
        proposal.draft.tokens.push_back({line.history.front(), 0.9f, 0});
      }
      const int before = proposal.draft.size();
      Proposal* asked[] = {&proposal};
      drafter.Propose(asked);
      CheckDraft(proposal, before, seen[line.owner]);
    }
    seen[line.owner].insert(line.history.begin(), line.history.end());
  }
}

namespace {

Proposal Question(std::span<const Token> history, int max_tokens) {
  return {0, history, max_tokens, 0, 0, {}};
}

TEST(ContinuationTest, IsHistoryAndDraftAsOneText) {
  const std::vector<Token> history = {1, 2, 3};
  Proposal proposal = Question(history, 4);
  proposal.draft.tokens = {{4, 0.5f, 0}};
  Continuation text(proposal);
  ASSERT_TRUE(text.Append(5, 0.5f));
  ASSERT_EQ(text.length(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(text[i], static_cast<Token>(i + 1));
  std::vector<Token> last(3);
  text.CopyLast(last);
  EXPECT_EQ(last, (std::vector<Token>{3, 4, 5}));
  EXPECT_EQ(text.HashLast(3), HashNgram(last));
  EXPECT_EQ(text.room(), 2);
}

TEST(ContinuationTest, EndsAtTheLimits) {
  const std::vector<Token> history = {1};
  Proposal proposal = Question(history, 2);
  {
    Continuation text(proposal);
    EXPECT_TRUE(text.Append(1, 0.5f));
    EXPECT_TRUE(text.Append(2, 0.5f));
    EXPECT_FALSE(text.Append(3, 0.5f)) << "max_tokens";
  }
  proposal.max_tokens = 9;
  proposal.p_min = 0.5f;
  {
    Continuation text(proposal);
    EXPECT_FALSE(text.Append(3, 0.49f));
    EXPECT_TRUE(text.Append(3, 0.5f)) << "p_min itself is enough";
  }
  proposal.min_survival = 0.0625;
  {
    Continuation text(proposal);  // survives with 0.125 so far
    EXPECT_TRUE(text.Append(4, 0.5f)) << "min_survival itself is enough";
    EXPECT_FALSE(text.Append(5, 0.99f));
  }
  EXPECT_EQ(proposal.draft.size(), 4);
}

TEST(ContinuationTest, KeepsDistributionsAsLongAsTheDraft) {
  const std::vector<Token> history = {1};
  Proposal proposal = Question(history, 2);
  proposal.draft.tokens = {{4, 0.5f, 0}};
  proposal.draft.distributions = {{{4, 0.5f}, {5, 0.5f}}};
  Continuation(proposal).Append(7, 0.5f);
  ASSERT_EQ(proposal.draft.distributions.size(), 2u);
  ASSERT_EQ(proposal.draft.distributions[1].size(), 1u);
  EXPECT_EQ(proposal.draft.distributions[1][0].token, 7);
  EXPECT_EQ(proposal.draft.distributions[1][0].probability, 1.0f);
}

TEST(MatchConfidenceTest, GrowsWithAgreementAndLength) {
  EXPECT_GT(MatchConfidence(3, 3, 4), MatchConfidence(2, 3, 4));
  EXPECT_GT(MatchConfidence(9, 9, 4), MatchConfidence(1, 1, 4));
  EXPECT_GT(MatchConfidence(0, 0, 24), MatchConfidence(0, 0, 4));
  EXPECT_NEAR(MatchConfidence(500, 1000, 12), 0.5, 0.01) << "many observations outweigh the length";
}

TEST(NextTokensTest, KeepsTheMostFrequentFirst) {
  NextTokens next;
  for (const Token token : {1, 2, 3, 4, 2, 2, 3, 5}) next.Add(token);
  EXPECT_EQ(next.best().token, 2);
  EXPECT_EQ(next.best().count, 3);
  EXPECT_EQ(next.total(), 8);
  ASSERT_EQ(next.tokens().size(), 4u);
  EXPECT_EQ(next.tokens()[1], (CountedToken{3, 2}));
  EXPECT_EQ(next.tokens()[2], (CountedToken{5, 1})) << "took the place of 1; of equals the latest comes first";
  EXPECT_EQ(next.tokens()[3], (CountedToken{4, 1}));
}

RC_GTEST_PROP(HashIndexTest, FindsWhatWasAdded, ()) {
  const auto keys = *rc::gen::arbitrary<std::set<uint64_t>>();
  HashIndex<uint64_t> index;
  for (const uint64_t key : keys) {
    if (key != 1) *index.FindOrAdd(key) = key;  // 0 and 1 are one key
  }
  for (const uint64_t key : keys) {
    if (key != 1) RC_ASSERT(index.Find(key) != nullptr && *index.Find(key) == key);
  }
}

TEST(HashIndexTest, DoesNotSearchForLongWhenKeysCollide) {
  HashIndex<int> index;
  int kept = 0;
  for (uint64_t i = 1; i <= 10'000; ++i) kept += index.FindOrAdd(i << 40) != nullptr;
  EXPECT_LT(kept, 100);
  EXPECT_EQ(index.size(), static_cast<size_t>(kept));
}

TEST(PerOwnerTest, ForgetsTheOwnerThatWasAwayLongest) {
  PerOwner<int> owners(2, [] { return std::make_shared<int>(0); });
  *owners.Get("a") = 1;
  const std::shared_ptr<int> b = owners.Get("b");
  *b = 2;
  EXPECT_EQ(*owners.Get("a"), 1);
  owners.Get("c");
  EXPECT_EQ(owners.size(), 2u);
  EXPECT_EQ(*owners.Get("a"), 1);
  EXPECT_EQ(*owners.Get("b"), 0) << "b is new";
  EXPECT_EQ(*b, 2) << "who still holds it keeps it";
}

}  // namespace
}  // namespace outrider
