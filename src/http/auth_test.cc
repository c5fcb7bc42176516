#include "http/auth.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace outrider {
namespace {

TEST(AuthTest, OnlyKnownKeysAreAccepted) {
  const ApiKeys keys({"secret", "other"});
  EXPECT_TRUE(keys.Accepts("Bearer secret", ""));
  EXPECT_TRUE(keys.Accepts("", "other"));
  for (const char* wrong :
       {"", "secret", "Bearer ", "Bearer secre", "Bearer secrets", "Bearer secreT", "bearer secret", "Basic secret"}) {
    EXPECT_FALSE(keys.Accepts(wrong, "")) << wrong;
  }
  EXPECT_FALSE(keys.Accepts("", ""));
  EXPECT_FALSE(keys.Accepts("", "Bearer secret")) << "x-api-key is the key itself";
  EXPECT_FALSE(ApiKeys().required());
  EXPECT_TRUE(keys.required());
  EXPECT_FALSE(ApiKeys({""}).Accepts("", "")) << "an empty key opens nothing";
}

// What drafters remember is kept apart by owner, so two keys must never have the same one, nor a key two of them.
TEST(AuthTest, EachKeyIsAnOwnerOfItsOwn) {
  const ApiKeys keys({"secret", "other"});
  EXPECT_NE(keys.Owner("Bearer secret", ""), keys.Owner("Bearer other", ""));
  EXPECT_EQ(keys.Owner("Bearer secret", ""), keys.Owner("", "secret")) << "however it was sent";
  EXPECT_EQ(keys.Owner("Bearer secret", "").find("secret"), std::string::npos) << "the name must not give it away";
  EXPECT_EQ(ApiKeys().Owner("Bearer anything", ""), "") << "without keys, all requests have one owner";
}

class KeyFileTest : public testing::Test {
 protected:
  Result<std::vector<std::string>> Read(const std::string& content) const {
    std::ofstream(path_, std::ios::binary) << content;
    return ReadKeyFile(path_);
  }

  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ = testing::TempDir() + "keys_" + std::to_string(getpid());
};

TEST_F(KeyFileTest, HasOneKeyPerLine) {
  const auto keys = Read("# a comment\n\nfirst\r\nsecond  \n  \nwith # inside\nlast");
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(*keys, (std::vector<std::string>{"first", "second", "with # inside", "last"}));
}

TEST_F(KeyFileTest, WithoutAKeyIsRefused) {
  for (const char* content : {"", "\n\n", "# only a comment\n", "  \r\n"}) {
    const auto keys = Read(content);
    ASSERT_FALSE(keys.ok()) << content;
    EXPECT_NE(keys.status().message().find(path_), std::string::npos) << keys.status().message();
  }
  EXPECT_EQ(ReadKeyFile("/nonexistent/keys").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace outrider
