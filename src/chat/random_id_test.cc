#include "chat/random_id.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace outrider {
namespace {

TEST(RandomIdTest, IdsDiffer) {
  const std::string id = MakeId("chatcmpl-");
  EXPECT_TRUE(id.starts_with("chatcmpl-"));
  EXPECT_EQ(id.size(), std::string("chatcmpl-").size() + 24);
  std::set<std::string> ids, firsts;
  for (int i = 0; i < 1000; ++i) {
    const std::string bare = MakeId("");
    EXPECT_TRUE(std::all_of(bare.begin(), bare.end(), [](unsigned char c) { return std::isalnum(c); })) << bare;
    ids.insert(bare);
    firsts.insert(bare.substr(0, 1));
  }
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(firsts.size(), 62u) << "all letters and digits are used";
}

}  // namespace
}  // namespace outrider
