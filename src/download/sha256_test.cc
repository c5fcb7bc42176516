#include "download/sha256.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace outrider {
namespace {

TEST(Sha256Test, KnowsThePublishedValues) {
  const std::string path = testing::TempDir() + "/sha256_test";
  ASSERT_TRUE(KeepFile(path, "abc").ok());
  EXPECT_EQ(*Sha256OfFile(path), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  ASSERT_TRUE(KeepFile(path, std::string(1'000'000, 'a')).ok());
  EXPECT_EQ(*Sha256OfFile(path), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_FALSE(Sha256OfFile("/nowhere").ok());
}

}  // namespace
}  // namespace outrider
