#include "chat/random_id.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(RandomIdTest, IdsDiffer) {
  const std::string id = MakeId("chatcmpl-");
  EXPECT_TRUE(id.starts_with("chatcmpl-"));
  EXPECT_EQ(id.size(), std::string("chatcmpl-").size() + 24);
  EXPECT_NE(id, MakeId("chatcmpl-"));
}

}  // namespace
}  // namespace outrider
