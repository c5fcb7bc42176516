#include "base/fair_cache.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider {
namespace {

std::vector<std::string> Items(const FairCache<std::string>& cache) {
  std::vector<std::string> items;
  for (const auto& entry : cache.entries()) items.push_back(entry.item);
  return items;
}

TEST(FairCacheTest, TheOwnerWithTheMostLosesWhatItUsedLeastRecently) {
  FairCache<std::string> cache(40);
  cache.Add("bob", "b", 10);
  for (const char* item : {"a1", "a2", "a3"}) cache.Add("ann", item, 10);
  EXPECT_EQ(Items(cache), (std::vector<std::string>{"a3", "a2", "a1", "b"}));
  cache.MarkUsed(std::prev(cache.entries().end(), 2));
  cache.Add("ann", "a4", 10);
  EXPECT_EQ(Items(cache), (std::vector<std::string>{"a4", "a1", "a3", "b"})) << "b is the oldest, but bob's only one";
  EXPECT_EQ(cache.bytes(), 40u);
  cache.Add("bob", "large", 35);
  EXPECT_EQ(Items(cache), (std::vector<std::string>{"a4", "a1", "a3"})) << "ann keeps less than what bob wanted to";
  EXPECT_EQ(cache.bytes(), 30u);
}

TEST(FairCacheTest, WhatIsLargerThanTheLimitIsNotKept) {
  FairCache<std::string> cache(40);
  cache.Add("", "kept", 40);
  cache.Add("", "larger", 41);
  EXPECT_EQ(Items(cache), std::vector<std::string>{"kept"});
  cache.Drop(cache.entries().begin());
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace outrider
