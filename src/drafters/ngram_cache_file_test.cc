#include "drafters/ngram_cache_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace outrider {
namespace {

constexpr int kVocabulary = 100;

std::string Bytes(const std::vector<int32_t>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int32_t)};
}

using Plain = std::map<CachedNgram, std::map<Token, int32_t>>;

Plain PlainOf(const NgramCounts& counts) {
  Plain plain;
  counts.ForEach([&](const CachedNgram& ngram, std::span<const CountedToken> tokens) {
    for (const CountedToken& counted : tokens) plain[ngram][counted.token] = counted.count;
  });
  return plain;
}

// Two n-grams as llama.cpp writes them.
const std::vector<int32_t> kFile = {7, 8, -1, -1, 2, 5, 3, 6, 9,  //
                                    1, 2, 3,  4,  1, 0, 1};

TEST(NgramCacheFileTest, ReadsWhatOthersWrite) {
  const auto counts = DecodeNgramCache(Bytes(kFile), kVocabulary);
  ASSERT_TRUE(counts.ok()) << counts.status().message();
  EXPECT_EQ(PlainOf(*counts), (Plain{{{7, 8, -1, -1}, {{5, 3}, {6, 9}}}, {{1, 2, 3, 4}, {{0, 1}}}}));
  const std::vector<Token> ngram = {7, 8};
  const NgramCounts::Followers* followers = counts->Find(MakeCachedNgram(ngram));
  ASSERT_NE(followers, nullptr);
  EXPECT_EQ(followers->total(), 12);
  std::array<CountedToken, 1> top;
  EXPECT_EQ(counts->Top(*followers, top), 1u);
  EXPECT_EQ(top[0], (CountedToken{6, 9}));
  EXPECT_TRUE(counts->CheckInvariants());
}

TEST(NgramCacheFileTest, AnEmptyFileIsAnEmptyCache) {
  const auto counts = DecodeNgramCache("", kVocabulary);
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->size(), 0u);
}

TEST(NgramCacheFileTest, RefusesFilesThatAreCut) {
  const std::string bytes = Bytes(kFile);
  const size_t first_record = 9 * sizeof(int32_t);
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeNgramCache(bytes.substr(0, size), kVocabulary).ok(), size == first_record) << size;
  }
}

TEST(NgramCacheFileTest, RefusesWhatMakesNoSense) {
  const auto refuses = [](const std::vector<int32_t>& numbers) {
    return !DecodeNgramCache(Bytes(numbers), kVocabulary).ok();
  };
  EXPECT_TRUE(refuses({-1, -1, -1, -1, 1, 5, 1})) << "no n-gram";
  EXPECT_TRUE(refuses({7, -1, 8, -1, 1, 5, 1})) << "a hole";
  EXPECT_TRUE(refuses({7, -2, -1, -1, 1, 5, 1})) << "a negative token";
  EXPECT_TRUE(refuses({100, -1, -1, -1, 1, 5, 1})) << "another vocabulary";
  EXPECT_TRUE(refuses({7, -1, -1, -1, 1, 100, 1})) << "another vocabulary";
  EXPECT_TRUE(refuses({7, -1, -1, -1, 1, -1, 1})) << "no token";
  EXPECT_TRUE(refuses({7, -1, -1, -1, 0})) << "no followers";
  EXPECT_TRUE(refuses({7, -1, -1, -1, -1, 5, 1})) << "a negative number of followers";
  EXPECT_TRUE(refuses({7, -1, -1, -1, INT32_MAX, 5, 1})) << "more followers than bytes";
  EXPECT_TRUE(refuses({7, -1, -1, -1, 1, 5, 0})) << "a count of nothing";
  EXPECT_TRUE(refuses({7, -1, -1, -1, 2, 5, 1, 5, 1})) << "a follower twice";
  EXPECT_TRUE(refuses({7, -1, -1, -1, 1, 5, 1, 7, -1, -1, -1, 1, 6, 1})) << "an n-gram twice";
}

TEST(NgramCacheFileTest, ErrorsNameTheFile) {
  const std::string path = testing::TempDir() + "/cut.ngrams";
  std::ofstream(path) << "cut";
  const auto counts = ReadNgramCache(path, kVocabulary);
  EXPECT_EQ(counts.status().message(),
            path + " is not an n-gram cache of this model: it ends within an n-gram (before byte 0)");
  std::filesystem::remove(path);
  EXPECT_EQ(ReadNgramCache(path, kVocabulary).status().code(), StatusCode::kNotFound);
}

TEST(NgramCacheFileTest, RefusesHugeFiles) {
  const std::string path = testing::TempDir() + "/huge.ngrams";
  std::ofstream(path) << "x";
  std::filesystem::resize_file(path, uint64_t{1} << 32);  // sparse
  EXPECT_EQ(ReadNgramCache(path, kVocabulary).status().code(), StatusCode::kInvalidArgument);
  std::filesystem::remove(path);
}

TEST(NgramCacheFileTest, CannotWriteWhereThereIsNoFolder) {
  const Status status = WriteNgramCache("/no/such/folder/file", NgramCounts());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("/no/such/folder/file"), std::string::npos);
}

TEST(NgramCountsTest, AgeForgetsWhatWasSeenOnce) {
  NgramCounts counts;
  const CachedNgram often = {1, -1, -1, -1}, once = {2, -1, -1, -1};
  for (int i = 0; i < 5; ++i) counts.Add(often, 7);
  counts.Add(often, 8);
  counts.Add(once, 7);
  counts.Age();
  EXPECT_EQ(PlainOf(counts), (Plain{{often, {{7, 2}}}}));
}

TEST(NgramCountsTest, CountsDoNotOverflow) {
  NgramCounts counts;
  const CachedNgram ngram = {1, -1, -1, -1};
  ASSERT_TRUE(counts.Insert(ngram, std::vector<CountedToken>{{7, INT32_MAX}, {8, INT32_MAX}}));
  counts.Add(ngram, 7);
  EXPECT_EQ(counts.Find(ngram)->total(), int64_t{2} * INT32_MAX);
}

RC_GTEST_PROP(NgramCountsTest, CountsAndSurvivesTheFile, ()) {
  using Observation = std::tuple<Token, Token, Token>;
  const auto observations = *rc::gen::container<std::vector<Observation>>(
      rc::gen::tuple(rc::gen::inRange(0, 3), rc::gen::inRange(-1, 3), rc::gen::inRange(0, kVocabulary)));
  NgramCounts counts;
  Plain expected;
  for (const auto& [first, second, next] : observations) {
    const CachedNgram ngram = {first, second, -1, -1};
    counts.Add(ngram, next);
    ++expected[ngram][next];
  }
  RC_ASSERT(counts.CheckInvariants());
  RC_ASSERT(PlainOf(counts) == expected);
  const auto decoded = DecodeNgramCache(EncodeNgramCache(counts), kVocabulary);
  RC_ASSERT(decoded.ok());
  RC_ASSERT(decoded->CheckInvariants());
  RC_ASSERT(PlainOf(*decoded) == expected);
}

}  // namespace
}  // namespace outrider
