#include "drafters/suffix_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace outrider {
namespace {

using Text = std::vector<Token>;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kAll = SIZE_MAX;

// `count` tokens that occur nowhere else.
Text Fresh(Token from, size_t count) {
  Text text(count);
  std::iota(text.begin(), text.end(), from);
  return text;
}

void Learn(SuffixMemory& memory, const std::string& owner, const Text& text) {
  memory.Remember(owner, text);
  memory.Absorb(kAll);
}

// Tokens at the end of `text` that some tree of the owner knows.
int Known(SuffixMemory& memory, const std::string& owner, const Text& text) {
  int longest = 0;
  for (const SuffixMemory::Generation* generation : memory.Find(owner)) {
    if (!generation) continue;
    SuffixTree::Cursor cursor;
    for (const Token token : text) generation->tree.Advance(cursor, token);
    longest = std::max(longest, generation->tree.Length(cursor));
  }
  return longest;
}

size_t Stored(SuffixMemory& memory, const std::string& owner) {
  return memory.Find(owner)[0]->tree.text().size();
}

TEST(SuffixMemoryTest, RemembersPerOwner) {
  SuffixMemory memory(kMiB);
  Learn(memory, "ann", {1, 2, 3});
  EXPECT_EQ(Known(memory, "ann", {1, 2, 3}), 3);
  EXPECT_EQ(Known(memory, "bob", {1, 2, 3}), 0);
  Learn(memory, "bob", {4});
  EXPECT_EQ(Known(memory, "bob", {1, 2, 3}), 0);
}

TEST(SuffixMemoryTest, TextsDoNotRunIntoEachOther) {
  SuffixMemory memory(kMiB);
  Learn(memory, "", {1, 2});
  Learn(memory, "", {3, 4});
  EXPECT_EQ(Known(memory, "", {1, 2, 3}), 1);
}

TEST(SuffixMemoryTest, AbsorbsInBits) {
  SuffixMemory memory(kMiB);
  memory.Remember("", Fresh(0, 100));
  EXPECT_EQ(Known(memory, "", Fresh(0, 100)), 0);
  for (int i = 0; i < 10; ++i) memory.Absorb(10);
  EXPECT_EQ(Known(memory, "", Fresh(0, 100)), 100);
}

TEST(SuffixMemoryTest, StoresOnlyWhatIsNew) {
  SuffixMemory memory(kMiB);
  const Text first_turn = Fresh(0, 1000);
  Learn(memory, "", first_turn);
  const size_t before = Stored(memory, "");

  Text second_turn = first_turn;
  const Text more = Fresh(5000, 50);
  second_turn.insert(second_turn.end(), more.begin(), more.end());
  Learn(memory, "", second_turn);
  EXPECT_LT(Stored(memory, "") - before, 200u);
  Text seam(second_turn.begin() + 980, second_turn.begin() + 1010);
  EXPECT_EQ(Known(memory, "", seam), 30) << "what is new comes with some context";
}

TEST(SuffixMemoryTest, ForgetsOldTextsFirst) {
  SuffixMemory memory(kMiB);
  const Text old = Fresh(0, 50);
  Learn(memory, "", old);
  EXPECT_EQ(Known(memory, "", old), 50);
  for (Token i = 1; i < 30; ++i) Learn(memory, "", Fresh(i * 1000, 1000));
  EXPECT_EQ(Known(memory, "", old), 0);
  EXPECT_EQ(Known(memory, "", Fresh(29'000, 1000)), 1000);
}

TEST(SuffixMemoryTest, WhatKeepsComingUpStays) {
  SuffixMemory memory(kMiB);
  const Text often = Fresh(0, 50);
  for (Token i = 1; i < 60; ++i) {
    Learn(memory, "", Fresh(i * 1000, 1000));
    Learn(memory, "", often);
  }
  EXPECT_EQ(Known(memory, "", often), 50);
}

TEST(SuffixMemoryTest, ForgetsTheOwnerThatWasAwayLongest) {
  SuffixMemory memory(2 * kMiB);
  Learn(memory, "ann", {1, 2});
  Learn(memory, "bob", {1, 2});
  memory.Find("ann");
  Learn(memory, "cid", {1, 2});
  EXPECT_EQ(Known(memory, "ann", {1, 2}), 2);
  EXPECT_EQ(Known(memory, "bob", {1, 2}), 0);
  EXPECT_EQ(Known(memory, "cid", {1, 2}), 2);
}

TEST(SuffixMemoryTest, ANewOwnerGetsRoomFromTheLargest) {
  SuffixMemory memory(4 * kMiB);
  Learn(memory, "small", Fresh(0, 100));
  for (Token i = 1; i < 100; ++i) Learn(memory, "large", Fresh(i * 1000, 1000));
  for (Token i = 1; i < 20; ++i) Learn(memory, "new", Fresh(i * 1000, 1000));
  EXPECT_EQ(Known(memory, "small", Fresh(0, 100)), 100);
  EXPECT_EQ(Known(memory, "new", Fresh(1000, 1000)), 1000);
}

TEST(SuffixMemoryTest, ATextLargerThanTheMemoryIsNoProblem) {
  SuffixMemory memory(kMiB);
  Learn(memory, "", Fresh(0, 1'000'000));
  EXPECT_LE(memory.bytes(), kMiB);
  EXPECT_GT(Known(memory, "", Fresh(999'900, 100)), 0);
}

RC_GTEST_PROP(SuffixMemoryTest, NeverHoldsMoreThanItMay, ()) {
  const size_t bound = kMiB * *rc::gen::inRange<size_t>(1, 3);
  SuffixMemory memory(bound);
  uint32_t random = *rc::gen::arbitrary<uint32_t>();
  const auto next = [&random](uint32_t below) {
    random = random * 1664525u + 1013904223u;
    return (random >> 8) % below;
  };
  for (int i = 0; i < 30; ++i) {
    Text text(next(4000));
    const uint32_t letters = 2 + (next(2) ? next(4) : next(50'000));
    for (Token& token : text) token = static_cast<Token>(next(letters));
    memory.Remember(std::to_string(next(5)), text);
    memory.Absorb(next(2) ? kAll : next(4000));
    RC_ASSERT(memory.bytes() <= bound);
  }
}

}  // namespace
}  // namespace outrider
