#include "http/slots.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "http/http_test_util.h"

namespace outrider {
namespace {

constexpr uint64_t kFingerprint = 77;

class SlotsTest : public testing::Test {
 protected:
  SlotsTest() { std::filesystem::create_directory(folder_); }
  ~SlotsTest() override { std::filesystem::remove_all(folder_); }

  Result<Json> Act(const std::string& id, const std::string& action, const std::string& body = "") {
    return SlotActions(options_, kFingerprint, house_.scheduler).Act(id, action, body, "");
  }

  // Leaves the prompt and the answer in slot 0.
  void Generate(const std::string& prompt, int max_tokens) {
    GenerationRequest request;
    request.prompt = house_.context.tokenizer.Tokenize(prompt, false, SpecialTokens::kAsText);
    request.sampling.temperature = 0;
    request.max_tokens = max_tokens;
    request.slot = 0;
    auto generation = house_.scheduler.Submit(request);
    ASSERT_TRUE(generation.ok()) << generation.status().message();
    for (bool over = false; !over;) {
      const auto chunk = (*generation)->Wait(std::chrono::milliseconds(100));
      over = chunk && chunk->completion;
    }
  }

  const std::string folder_ = testing::TempDir() + "slots_" + std::to_string(getpid());
  SlotFileOptions options_ = {.folder = folder_};
  TestScheduler house_;
};

TEST_F(SlotsTest, WhatIsSavedCanBeRestoredElsewhere) {
  Generate("A question?", 5);
  const auto saved = Act("0", "save", R"({"filename": "one.bin"})");
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  EXPECT_EQ((*saved)["id_slot"], 0);
  EXPECT_EQ((*saved)["filename"], "one.bin");
  const int tokens = (*saved)["n_saved"];
  EXPECT_GE(tokens, 11 + 4) << "the last token need not be in memory";
  EXPECT_EQ((*saved)["n_written"], std::filesystem::file_size(folder_ + "/one.bin"));

  const auto restored = Act("1", "restore", R"({"filename": "one.bin"})");
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_EQ((*restored)["id_slot"], 1);
  EXPECT_EQ((*restored)["n_restored"], tokens);
  EXPECT_EQ((*restored)["n_read"], (*saved)["n_written"]);

  const auto erased = Act("1", "erase");
  ASSERT_TRUE(erased.ok()) << erased.status().message();
  EXPECT_EQ(*erased, (Json{{"id_slot", 1}, {"n_erased", tokens}}));
  EXPECT_EQ((*Act("1", "erase"))["n_erased"], 0) << "it is empty now";
}

TEST_F(SlotsTest, BadSlotsAndActionsAreRefused) {
  for (const char* id : {"", "x", "1x", "0 ", "99999999999999999999"}) {
    EXPECT_EQ(Act(id, "erase").status().code(), StatusCode::kInvalidArgument) << id;
  }
  EXPECT_FALSE(Act("2", "erase").ok()) << "there are two";
  EXPECT_FALSE(Act("-1", "erase").ok());
  const Status unknown = Act("0", "frobnicate").status();
  EXPECT_EQ(unknown.field(), "action");
  EXPECT_NE(unknown.message().find("frobnicate"), std::string::npos);
}

TEST_F(SlotsTest, FilesStayInTheirFolder) {
  Generate("Secret", 1);
  for (const char* name : {"../x", "/etc/passwd", ".hidden", "", "a/b"}) {
    const Json body = {{"filename", name}};
    EXPECT_EQ(Act("0", "save", body.dump()).status().code(), StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(Act("0", "restore", body.dump()).status().code(), StatusCode::kInvalidArgument) << name;
  }
  EXPECT_FALSE(Act("0", "save", "not json").ok());
  EXPECT_FALSE(Act("0", "save", R"({"filename": 5})").ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  const auto without = SlotActions({}, kFingerprint, house_.scheduler).Act("0", "save", R"({"filename": "x"})", "");
  EXPECT_EQ(without.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(without.status().message().find("--slot-save-path"), std::string::npos);
}

TEST_F(SlotsTest, FilesThatCannotBeRestoredLeaveTheSlotAlone) {
  Generate("A question?", 5);
  ASSERT_TRUE(Act("0", "save", R"({"filename": "good"})").ok());
  std::ofstream(folder_ + "/bad") << "nonsense";
  EXPECT_FALSE(Act("0", "restore", R"({"filename": "bad"})").ok());
  EXPECT_FALSE(Act("0", "restore", R"({"filename": "missing"})").ok());
  const auto foreign =
      SlotActions(options_, kFingerprint + 1, house_.scheduler).Act("0", "restore", R"({"filename": "good"})", "");
  EXPECT_FALSE(foreign.ok()) << "the file is another model's";
  EXPECT_GT((*Act("0", "erase"))["n_erased"], 0);
}

TEST_F(SlotsTest, TheFolderHasAQuota) {
  Generate("A question?", 5);
  options_.max_files = 2;
  const auto save = [&](const char* name) { return Act("0", "save", Json{{"filename", name}}.dump()); };
  const auto first = save("one");
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(save("two").ok());
  EXPECT_NE(save("three").status().message().find("--slot-save-files"), std::string::npos);
  EXPECT_TRUE(save("two").ok()) << "it replaces a file";

  const uint64_t bytes = (*first)["n_written"];
  options_.max_files = 10;
  options_.max_bytes = 3 * bytes;
  ASSERT_TRUE(save("three").ok());
  EXPECT_TRUE(save("three").ok()) << "it replaces a file";
  EXPECT_NE(save("four").status().message().find("--slot-save-mib"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/four"));
  std::filesystem::remove(folder_ + "/one");
  EXPECT_TRUE(save("four").ok());
}

TEST_F(SlotsTest, WhatIsRestoredIsTheOneWhoRestoredIt) {
  Generate("A question?", 5);
  SlotActions actions(options_, kFingerprint, house_.scheduler);
  ASSERT_TRUE(actions.Act("0", "save", R"({"filename": "one"})", "anna").ok());
  ASSERT_TRUE(actions.Act("1", "restore", R"({"filename": "one"})", "anna").ok());
  for (const auto& [owner, cached] : {std::pair("anna", 10), {"bert", 0}}) {
    GenerationRequest request;
    request.prompt = house_.context.tokenizer.Tokenize("A question?", false, SpecialTokens::kAsText);
    request.sampling.temperature = 0;
    request.max_tokens = 1;
    request.slot = 1;
    request.owner = owner;
    auto generation = house_.scheduler.Submit(request);
    ASSERT_TRUE(generation.ok());
    std::optional<Chunk> chunk;
    while (!chunk || !chunk->completion) chunk = (*generation)->Wait(std::chrono::milliseconds(100));
    EXPECT_EQ(chunk->completion->timings.cached_tokens, cached) << owner;
  }
}

}  // namespace
}  // namespace outrider
