#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>

namespace outrider {
namespace {

class FileTest : public testing::Test {
 protected:
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  std::string Content() const {
    File file(open(path_.c_str(), O_RDONLY));
    std::string bytes(std::filesystem::file_size(path_), '\0');
    EXPECT_TRUE(file.Read(bytes.data(), bytes.size()));
    return bytes;
  }
  auto FilesThere() const {
    return std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator());
  }

  // Its own: tests run beside each other.
  static std::filesystem::path NewFolder() {
    std::string name = std::filesystem::temp_directory_path() / "outrider-file-test.XXXXXX";
    return mkdtemp(name.data());
  }

  const std::filesystem::path folder_ = NewFolder();
  const std::string path_ = folder_ / "file";
};

TEST_F(FileTest, IsReplacedAsAWhole) {
  ASSERT_TRUE(ReplaceFile(path_, [](File& file) { return file.Write("old"); }).ok());
  ASSERT_TRUE(ReplaceFile(path_, [](File& file) { return file.Write("new") && file.Write("er"); }).ok());
  EXPECT_EQ(Content(), "newer");
  EXPECT_EQ(FilesThere(), 1);
}

TEST_F(FileTest, OrNotAtAll) {
  ASSERT_TRUE(ReplaceFile(path_, [](File& file) { return file.Write("old"); }).ok());
  const Status status = ReplaceFile(path_, [](File& file) {
    EXPECT_TRUE(file.Write("half of it"));
    errno = ENOSPC;
    return false;
  });
  EXPECT_EQ(status.message(), "cannot write " + path_ + ": No space left on device");
  EXPECT_EQ(Content(), "old");
  EXPECT_EQ(FilesThere(), 1);
}

TEST_F(FileTest, AFolderThatIsNotThereIsAnError) {
  const Status status = ReplaceFile(folder_ / "no" / "file", [](File&) { return true; });
  EXPECT_EQ(status.code(), StatusCode::kInternal);
}

TEST_F(FileTest, IsKeptInAFolderThatIsMadeForItAndReadWhole) {
  const std::string deep = folder_ / "a" / "b" / "kept";
  EXPECT_EQ(ReadFile(deep), std::nullopt);
  ASSERT_TRUE(KeepFile(deep, "first").ok());
  ASSERT_TRUE(KeepFile(deep, std::string_view("sec\0nd", 6)).ok());
  EXPECT_EQ(ReadFile(deep), std::string("sec\0nd", 6));
  EXPECT_FALSE(KeepFile(deep + "/below a file", "x").ok());
}

TEST_F(FileTest, ReadingPastTheEndFails) {
  ASSERT_TRUE(ReplaceFile(path_, [](File& file) { return file.Write("abc"); }).ok());
  File file(open(path_.c_str(), O_RDONLY));
  char bytes[4];
  EXPECT_FALSE(file.Read(bytes, 4));
}

}  // namespace
}  // namespace outrider
