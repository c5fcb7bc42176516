#include "http/page.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

constexpr std::string_view kArchive =
    R"([{"path": "/", "type": "text/html", "etag": "\"1\"", "size": 5, "gzip": 2}, )"
    R"({"path": "/page/a.js", "type": "text/javascript", "etag": "\"2\"", "size": 3, "gzip": 0}])"
    "\nhello<>abc";

TEST(PageTest, FilesAreFoundByTheirPath) {
  const auto page = Page::Read(kArchive);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->files().size(), 2u);
  EXPECT_EQ(page->Find("/")->bytes, "hello");
  EXPECT_EQ(page->Find("/")->gzip, "<>");
  EXPECT_EQ(page->Find("/page/a.js")->bytes, "abc");
  EXPECT_EQ(page->Find("/page/a.js")->gzip, "");
  EXPECT_EQ(page->Find("/page/a.js")->etag, "\"2\"");
  EXPECT_EQ(page->Find("/page/b.js"), nullptr);
}

TEST(PageTest, AProgramWithoutAPageHasNoFiles) {
  EXPECT_TRUE(Page::Read("")->empty());
}

TEST(PageTest, DamagedArchivesAreRefused) {
  for (size_t length = 1; length < kArchive.size(); ++length) {
    EXPECT_FALSE(Page::Read(kArchive.substr(0, length)).ok()) << length;
  }
  for (const char* archive : {"[]\n", "{}\n", "[1]\n", "[{}]\n", "no JSON\n", R"([{"path": "/x", "size": 1}]\na)"}) {
    EXPECT_FALSE(Page::Read(archive).ok()) << archive;
  }
}

TEST(PageTest, TheEmbeddedPageIsWhole) {
  const auto page = Page::Read(EmbeddedPage());
  ASSERT_TRUE(page.ok());
  size_t gzipped = 0;
  for (const auto& [path, file] : page->files()) gzipped += file.gzip.empty() ? file.bytes.size() : file.gzip.size();
  EXPECT_LE(gzipped, 300'000u) << "what a browser loads";
}

}  // namespace
}  // namespace outrider
