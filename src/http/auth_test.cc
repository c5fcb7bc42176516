#include "http/auth.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace outrider {
namespace {

ApiKeys Plain(std::initializer_list<const char*> secrets) {
  std::vector<ApiKey> keys;
  for (const char* secret : secrets) keys.push_back(PlainKey(secret));
  return ApiKeys(std::move(keys));
}

TEST(AuthTest, OnlyKnownKeysAreAccepted) {
  const ApiKeys keys = Plain({"secret", "other"});
  EXPECT_EQ(keys.Find("Bearer secret", ""), &keys.keys()[0]);
  EXPECT_EQ(keys.Find("", "other"), &keys.keys()[1]);
  for (const char* wrong :
       {"", "secret", "Bearer ", "Bearer secre", "Bearer secrets", "Bearer secreT", "bearer secret", "Basic secret"}) {
    EXPECT_EQ(keys.Find(wrong, ""), nullptr) << wrong;
  }
  EXPECT_EQ(keys.Find("", ""), nullptr);
  EXPECT_EQ(keys.Find("", "Bearer secret"), nullptr) << "x-api-key is the key itself";
  EXPECT_EQ(keys.Find("", keys.keys()[0].digest), nullptr) << "who has read the file has no key";
  EXPECT_FALSE(ApiKeys().required());
  EXPECT_TRUE(keys.required());
  EXPECT_EQ(Plain({""}).Find("", ""), nullptr) << "an empty key opens nothing";
}

// What drafters remember is kept apart by owner, so two keys must never have the same name, nor a key two of them.
TEST(AuthTest, EachKeyHasANameOfItsOwn) {
  const ApiKeys keys = Plain({"secret", "other"});
  EXPECT_NE(keys.Find("Bearer secret", "")->name, keys.Find("Bearer other", "")->name);
  EXPECT_EQ(keys.Find("Bearer secret", "")->name, keys.Find("", "secret")->name) << "however it was sent";
  for (const ApiKey& key : keys.keys()) {
    EXPECT_EQ((key.name + key.digest).find("secret"), std::string::npos) << "neither may give the key away";
  }
  EXPECT_TRUE(CheckDistinct(keys.keys()).ok());
  EXPECT_FALSE(CheckDistinct({PlainKey("a"), PlainKey("a")}).ok());
  ApiKey alice = PlainKey("a"), other = PlainKey("b");
  alice.name = other.name = "alice";
  EXPECT_NE(CheckDistinct({alice, other}).message().find("alice"), std::string::npos);
}

TEST(AuthTest, ALineHoldsAKeyAndWhatItMayDo) {
  // printf %s secret | sha256sum
  const std::string hashed = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
  const auto full =
      ParseKeyLine(hashed + " name=alice@example.org admin requests-per-minute=60 tokens-per-minute=9000 slots=2");
  ASSERT_TRUE(full.ok()) << full.status().message();
  EXPECT_EQ(full->name, "alice@example.org");
  EXPECT_TRUE(full->admin);
  EXPECT_EQ(full->limits.requests_per_minute, 60);
  EXPECT_EQ(full->limits.tokens_per_minute, 9000);
  EXPECT_EQ(full->limits.slots, 2);
  EXPECT_NE(ApiKeys({*full}).Find("Bearer secret", ""), nullptr);

  const auto plain = ParseKeyLine("key:secret slots=1");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->digest, full->digest);
  EXPECT_FALSE(plain->admin);
  EXPECT_EQ(plain->limits.slots, 1);
  EXPECT_EQ(ParseKeyLine("a key with spaces")->digest, PlainKey("a key with spaces").digest);

  for (const std::string& wrong : std::initializer_list<std::string>{
           "sha256:", "sha256:abc", "sha256:" + std::string(64, 'X'), hashed + "0", "key:", "key: name=x",
           "key:x name=", "key:x name=a/b", "key:x slots=0", "key:x slots=-1", "key:x slots=many", "key:x slots",
           "key:x slots=99999999999", "key:x Admin", "key:x requests-per-minute=1.5"}) {
    const auto key = ParseKeyLine(wrong);
    EXPECT_FALSE(key.ok()) << wrong;
  }
}

class KeyFileTest : public testing::Test {
 protected:
  Result<std::vector<ApiKey>> Read(const std::string& content) const {
    std::ofstream(path_, std::ios::binary) << content;
    return ReadKeyFile(path_);
  }

  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ = testing::TempDir() + "keys_" + std::to_string(getpid());
};

TEST_F(KeyFileTest, HasOneKeyPerLine) {
  const auto keys = Read("# a comment\n\nfirst\r\nsecond  \n  \nwith # inside\nkey:third name=bob\nlast");
  ASSERT_TRUE(keys.ok());
  ASSERT_EQ(keys->size(), 5u);
  const ApiKeys found(*keys);
  const std::pair<const char*, const char*> names[] = {
      {"first", "key 1"}, {"second", "key 2"}, {"with # inside", "key 3"}, {"third", "bob"}, {"last", "key 5"}};
  for (const auto& [key, name] : names) {
    ASSERT_NE(found.Find("", key), nullptr) << key;
    EXPECT_EQ(found.Find("", key)->name, name);
  }
}

TEST_F(KeyFileTest, ErrorsNameTheLineAndNotTheKey) {
  const auto keys = Read("first\n\nkey:very-secret slots=none\n");
  ASSERT_FALSE(keys.ok());
  EXPECT_NE(keys.status().message().find("line 3: slots"), std::string::npos) << keys.status().message();
  EXPECT_EQ(keys.status().message().find("very-secret"), std::string::npos) << keys.status().message();
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
