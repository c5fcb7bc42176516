#include "drafters/ngram_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "drafters/lookup_test_util.h"
#include "drafters/ngram_cache_file.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 258;  // of FakeTokenizer

// A folder that is gone after the test.
class NgramCacheTest : public testing::Test {
 protected:
  NgramCacheTest() : folder_(testing::TempDir() + "/ngram_cache_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~NgramCacheTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // A file with the n-grams of size n of a text, as llama-lookup-create makes them.
  std::string FileOf(const std::string& name, const std::string& text, size_t n) {
    const std::vector<Token> tokens = ByteTokens(text);
    NgramCounts counts;
    for (size_t i = n; i < tokens.size(); ++i) {
      counts.Add(MakeCachedNgram(std::span(tokens).subspan(i - n, n)), tokens[i]);
    }
    EXPECT_TRUE(WriteNgramCache(Path(name), counts).ok());
    return Path(name);
  }

  std::filesystem::path folder_;
};

int32_t CountIn(const NgramCounts& counts, std::string_view ngram, char next) {
  const NgramCounts::Followers* followers = counts.Find(MakeCachedNgram(ByteTokens(ngram)));
  return followers == nullptr ? 0 : counts.Count(*followers, static_cast<unsigned char>(next));
}

TEST_F(NgramCacheTest, DraftsFromTheSequenceItself) {
  Talk talk(NgramCacheKind());
  talk.Begin("to be or not to be or n");
  EXPECT_EQ(talk.Draft(5), "ot to");
  EXPECT_EQ(talk.Draft(2), "ot");
}

TEST_F(NgramCacheTest, SaysNothingIfTheWaysPart) {
  Talk talk(NgramCacheKind());
  talk.Begin("xyzk1 xyzk2 xyzk3 xyzk");
  EXPECT_EQ(talk.Draft(5), "");
}

TEST_F(NgramCacheTest, RemembersAnswersOfTheSameOwner) {
  Talk talk(NgramCacheKind());
  for (int i = 0; i < 4; ++i) {
    talk.Begin("?", 0, "anna");
    talk.Say("whales are mammals");
    talk.End();
  }
  talk.Begin("so whal", 0, "anna");
  EXPECT_EQ(talk.Draft(6), "es are");
  talk.Begin("so whal", 0, "bert");
  EXPECT_EQ(talk.Draft(6), "");
  talk.Begin("so whal", 0, "");
  EXPECT_EQ(talk.Draft(6), "");
}

TEST_F(NgramCacheTest, RemembersNeitherPromptsNorBrokenAnswers) {
  Talk talk(NgramCacheKind());
  for (int i = 0; i < 4; ++i) {
    talk.Begin("whales are mammals");
    talk.Say("!");
    talk.End();
    talk.Begin("?");
    talk.Say("a dolphin too");
    talk.End(0, false);
  }
  talk.Begin("so whal");
  EXPECT_EQ(talk.Draft(6), "");
  talk.Begin("so a dol");
  EXPECT_EQ(talk.Draft(6), "");
}

TEST_F(NgramCacheTest, ForgetsWhenTold) {
  {
    Talk talk(NgramCacheKind(), "remember=off,dynamic=" + Path("dynamic"));
    for (int i = 0; i < 4; ++i) {
      talk.Begin("?");
      talk.Say("whales are mammals");
      talk.End();
    }
    talk.Begin("so whal");
    EXPECT_EQ(talk.Draft(6), "");
    talk.Stop();
  }
  EXPECT_FALSE(std::filesystem::exists(Path("dynamic")));
}

TEST_F(NgramCacheTest, BeginForgetsTheSequence) {  // others: 86 -> 11 % acceptance over requests
  Talk talk(NgramCacheKind());
  talk.Begin("status: stopped, status: stopped, status: stopped");
  talk.Begin("status: ");
  EXPECT_EQ(talk.Draft(7), "");
  talk.Say("running; status: ");
  EXPECT_EQ(talk.Draft(7), "running");
}

TEST_F(NgramCacheTest, HistoryMayShrink) {  // others: abort
  Talk talk(NgramCacheKind());
  talk.Begin("a long story with a long story");
  talk.Begin("a");
  EXPECT_EQ(talk.Draft(5), "");
  talk.Say("bcd abc");
  EXPECT_EQ(talk.Draft(1), "d");
}

TEST_F(NgramCacheTest, SequencesAreKeptApart) {
  Talk talk(NgramCacheKind());
  talk.Begin("secret phrase, secret phrase", 0);
  talk.Begin("sec", 1);
  EXPECT_EQ(talk.Draft(5, 1), "");
}

TEST_F(NgramCacheTest, ContinuesTheDraftOfAnother) {
  Talk talk(NgramCacheKind());
  talk.Begin("one two three. on");
  EXPECT_EQ(talk.Draft(8, 0, "e "), "e two th");
}

TEST_F(NgramCacheTest, DraftsFromTheCorpus) {
  const std::string path = FileOf("corpus", "qu qu qu qui qui qui qui", 2);
  Talk talk(NgramCacheKind(), "static=" + path);
  talk.Begin("xqu");
  EXPECT_EQ(talk.Draft(1), "i");
}

TEST_F(NgramCacheTest, TheCorpusHasASay) {
  const std::string path = FileOf("corpus", "cdx cdx", 2);
  const std::string prompt = "abcde abcde abcdx abcd";
  Talk alone(NgramCacheKind()), advised(NgramCacheKind(), "static=" + path);
  alone.Begin(prompt);
  advised.Begin(prompt);
  EXPECT_EQ(alone.Draft(1), "e");
  EXPECT_EQ(advised.Draft(1), "x");
}

TEST_F(NgramCacheTest, SavesWhatItLearnedAndLoadsIt) {
  const std::string parameters = "dynamic=" + Path("dynamic");
  for (int i = 0; i < 4; ++i) {
    Talk talk(NgramCacheKind(), parameters);
    talk.Begin("?");
    talk.Say("whales are mammals");
    talk.End();
    talk.Stop();
  }
  Talk talk(NgramCacheKind(), parameters);
  talk.Begin("so whal");
  EXPECT_EQ(talk.Draft(6), "es are");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "no temporary file is left";
  EXPECT_EQ(CountIn(*ReadNgramCache(Path("dynamic"), kVocabulary), "whal", 'e'), 4);
}

TEST_F(NgramCacheTest, NamedOwnersAreNeverSaved) {
  {
    Talk talk(NgramCacheKind(), "dynamic=" + Path("dynamic"));
    talk.Begin("?", 0, "anna");
    talk.Say("my password is swordfish");
    talk.End();
    talk.Stop();
  }
  EXPECT_FALSE(std::filesystem::exists(Path("dynamic")));
}

TEST_F(NgramCacheTest, TheStaticFileIsNotWritten) {
  const std::string path = FileOf("corpus", "abcabcabc", 2);
  const auto before = std::filesystem::last_write_time(path);
  {
    Talk talk(NgramCacheKind(), "static=" + path);
    talk.Begin("?");
    talk.Say("whales are mammals");
    talk.End();
  }
  EXPECT_EQ(std::filesystem::last_write_time(path), before);
}

TEST_F(NgramCacheTest, BrokenFilesAreNamed) {
  std::ofstream(Path("broken")) << "this is not a cache";
  for (const std::string which : {"static", "dynamic"}) {
    const auto made = MakeFromKind(NgramCacheKind(), which + "=" + Path("broken"));
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(made.status().message().find(Path("broken")), std::string::npos) << made.status().message();
  }
  std::ifstream file(Path("broken"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "this is not a cache") << "and left as they are";
}

TEST_F(NgramCacheTest, MissingFiles) {
  EXPECT_FALSE(MakeFromKind(NgramCacheKind(), "static=" + Path("none")).ok());
  EXPECT_TRUE(MakeFromKind(NgramCacheKind(), "dynamic=" + Path("none")).ok()) << "is made when there is something";
  EXPECT_FALSE(MakeFromKind(NgramCacheKind(), "dynamic=" + Path("no/folder")).ok());
  EXPECT_FALSE(MakeFromKind(NgramCacheKind(), "static=" + folder_.string()).ok());
}

RC_GTEST_PROP(NgramCachePropertyTest, KeepsItsPromises, ()) {
  CheckPromises(NgramCacheKind(), "");
}

}  // namespace
}  // namespace outrider
