#include "base/hash.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace outrider {
namespace {

TEST(HashTest, AFileIsHashedToItsLastByte) {
  const std::string path = testing::TempDir() + "hash_test";
  const auto hash = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return HashFile(path).hash();
  };
  std::string bytes((size_t{2} << 20) + 5, 'a');
  Fnv1a expected;
  expected.Add(bytes);
  EXPECT_EQ(hash(bytes), expected.hash());
  bytes[1'500'000] = 'b';
  EXPECT_NE(hash(bytes), expected.hash());
  EXPECT_EQ(hash(""), Fnv1a().hash());
}

}  // namespace
}  // namespace outrider
