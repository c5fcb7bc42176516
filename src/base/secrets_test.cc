#include "base/secrets.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace outrider {
namespace {

TEST(SecretsTest, EqualMeansEqual) {
  EXPECT_TRUE(ConstantTimeEquals("", ""));
  EXPECT_TRUE(ConstantTimeEquals("abc", "abc"));
  EXPECT_TRUE(ConstantTimeEquals(std::string_view("a\0\xff", 3), std::string_view("a\0\xff", 3)));
  EXPECT_FALSE(ConstantTimeEquals("abcabc", "abc"));
  EXPECT_FALSE(ConstantTimeEquals("abc", "abcabc"));
  EXPECT_FALSE(ConstantTimeEquals("", "a"));
  EXPECT_FALSE(ConstantTimeEquals("a", ""));
}

// Any single bit of any byte: a comparison that skips a byte, or a bit of it, accepts keys that were never issued.
TEST(SecretsTest, OneBitMakesStringsOfEqualLengthUnequal) {
  const std::string secret = "correct-horse-battery-staple";
  for (size_t at = 0; at < secret.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = secret;
      other[at] = static_cast<char>(other[at] ^ (1 << bit));
      EXPECT_FALSE(ConstantTimeEquals(secret, other)) << "byte " << at << ", bit " << bit;
      EXPECT_FALSE(ConstantTimeEquals(other, secret)) << "byte " << at << ", bit " << bit;
    }
  }
  EXPECT_FALSE(ConstantTimeEquals("ab", "ba")) << "the same bytes in another order";
  EXPECT_FALSE(ConstantTimeEquals("aabb", "bbaa")) << "two differences must not cancel each other out";
}

// That the time does not depend on the contents cannot be tested reliably. Here strings of unequal length, of which one
// is the beginning of the other, must be unequal; and the sanitizers see a read past the end of the shorter one.
TEST(SecretsTest, LengthsMayDifferInAnyWay) {
  for (size_t a = 0; a < 20; ++a) {
    for (size_t b = 0; b < 20; ++b) {
      EXPECT_EQ(ConstantTimeEquals(std::string(a, 'x'), std::string(b, 'x')), a == b) << a << " and " << b;
    }
  }
}

TEST(SecretsTest, SecretsAreHiddenWhereverTheyStand) {
  EXPECT_EQ(HideSecrets("remote:host:1,token=secret,n_max=3"), "remote:host:1,token=...,n_max=3");
  EXPECT_EQ(HideSecrets("remote:token=secret"), "remote:token=...");
  EXPECT_EQ(HideSecrets("a=--api-key secret --spec remote:h,token=secret -v --hf-token=secret"),
            "a=--api-key ... --spec remote:h,token=... -v --hf-token=...");
  EXPECT_EQ(HideSecrets("a=--spec 'remote:h,token=se cret,n_max=3' -v"), "a=--spec 'remote:h,token=...")
      << "it may hold what would end it without quotes";
  for (const char* harmless : {"", "--api-key-file=keys.txt", "--api-key", "max_token=3", "suffix:n=1"}) {
    EXPECT_EQ(HideSecrets(harmless), harmless);
  }
}

TEST(SecretsTest, FlagsOfSecretsAreKnown) {
  EXPECT_TRUE(TakesSecret("--api-key"));
  EXPECT_TRUE(TakesSecret("--admin-key"));
  EXPECT_FALSE(TakesSecret("--api-key-file"));
}

}  // namespace
}  // namespace outrider
