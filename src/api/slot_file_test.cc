#include "api/slot_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace outrider {
namespace {

constexpr uint64_t kFingerprint = 0x0123456789ABCDEF;

SavedSlot MakeSlot() {
  return {.tokens = {1, 2, 300000, 0}, .state = {9, 8, 7, 0, 255}};
}

void ExpectSame(const Result<SavedSlot>& got, const SavedSlot& wanted) {
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->tokens, wanted.tokens);
  EXPECT_EQ(got->state, wanted.state);
}

RC_GTEST_PROP(SlotFileTest, DecodesWhatItEncodes,
              (std::vector<Token> tokens, std::vector<uint8_t> state, uint64_t key)) {
  const Result<SavedSlot> decoded = DecodeSlot(EncodeSlot({tokens, state}, key), key);
  RC_ASSERT(decoded.ok());
  RC_ASSERT(decoded->tokens == tokens);
  RC_ASSERT(decoded->state == state);
}

TEST(SlotFileTest, EveryCutIsRefused) {
  const std::string bytes = EncodeSlot(MakeSlot(), kFingerprint);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(DecodeSlot(bytes.substr(0, length), kFingerprint).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(DecodeSlot(bytes + '\0', kFingerprint).ok());
}

TEST(SlotFileTest, EveryAlteredBitIsRefused) {
  const std::string bytes = EncodeSlot(MakeSlot(), kFingerprint);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string altered = bytes;
    altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(DecodeSlot(altered, kFingerprint).status().code(), StatusCode::kInvalidArgument) << bit;
  }
}

// Ids are places on a command line, which may differ between two starts; files are told apart by what is in them.
TEST(SlotFileTest, AdaptersAreFoundAgainByTheirContent) {
  SavedSlot slot = MakeSlot();
  slot.adapters = {{0, 0.5f}, {2, -1}};
  const std::string bytes = EncodeSlot(slot, {kFingerprint, {30, 20, 10}});
  EXPECT_EQ(bytes.size(), SlotFileBytes(slot));
  EXPECT_EQ(DecodeSlot(bytes, {kFingerprint, {30, 20, 10}})->adapters, slot.adapters);
  EXPECT_EQ(DecodeSlot(bytes, {kFingerprint, {10, 30}})->adapters, (AdapterSet{{0, -1}, {1, 0.5f}}));
  EXPECT_EQ(DecodeSlot(bytes, {kFingerprint, {30, 20}}).status().message(),
            "the slot file was saved with an adapter that this server has not loaded (--lora)");
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeSlot(bytes.substr(0, length), {kFingerprint, {30, 20, 10}}).ok());
  }
}

TEST(SlotFileTest, FilesWithoutAdaptersAreAsTheyWere) {
  const std::string bytes = EncodeSlot(MakeSlot(), {kFingerprint, {30, 20}});
  EXPECT_EQ(bytes, EncodeSlot(MakeSlot(), kFingerprint));
  EXPECT_EQ(bytes[8], 1) << "the version";
}

TEST(SlotFileTest, OtherModelsAreRefused) {
  const Status status = DecodeSlot(EncodeSlot(MakeSlot(), 1), 2).status();
  EXPECT_NE(status.message().find("another model"), std::string::npos) << status.message();
}

TEST(SlotFileTest, HugeSizesAreRefusedBeforeAllocating) {
  std::string bytes = EncodeSlot({}, kFingerprint);
  for (const size_t at : {24u, 32u}) {
    for (const uint64_t huge : {uint64_t{1} << 62, ~uint64_t{0}, uint64_t{1} << 40}) {
      std::string altered = bytes;
      altered.replace(at, sizeof(huge), reinterpret_cast<const char*>(&huge), sizeof(huge));
      EXPECT_FALSE(DecodeSlot(altered, kFingerprint).ok());
    }
  }
}

TEST(SlotFileTest, PathsStayInTheDirectory) {
  EXPECT_EQ(*SlotFilePath("/data/slots", "a-B_9.bin"), "/data/slots/a-B_9.bin");
  EXPECT_EQ(*SlotFilePath("/data/slots/", "x"), "/data/slots/x");
  for (const std::string name :
       {"", ".", "..", ".hidden", "a/b", "/etc/passwd", "../x", "a\\b", "a b", "a\nb", "ä", "C:x"}) {
    EXPECT_EQ(SlotFilePath("/data/slots", name).status().code(), StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(SlotFilePath("/data/slots", name).status().field(), "filename");
  }
  EXPECT_FALSE(SlotFilePath("/data", std::string("a\0b", 3)).ok());
  EXPECT_FALSE(SlotFilePath("/data", std::string(1000, 'a')).ok());
}

struct SlotFileOnDiskTest : testing::Test {
  SlotFileOnDiskTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "slot_file_test.XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    directory = pattern;
  }
  ~SlotFileOnDiskTest() override { std::filesystem::remove_all(directory); }

  size_t FilesInDirectory() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
  }

  std::filesystem::path directory;
};

TEST_F(SlotFileOnDiskTest, ReadsWhatItWrote) {
  const std::string path = directory / "slot.bin";
  const Result<uint64_t> written = WriteSlotFile(path, MakeSlot(), kFingerprint);
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_EQ(*written, std::filesystem::file_size(path));
  ExpectSame(ReadSlotFile(path, kFingerprint), MakeSlot());
  EXPECT_FALSE(ReadSlotFile(path, kFingerprint + 1).ok());
}

TEST_F(SlotFileOnDiskTest, ReplacesTheOldFileAndLeavesNothingElse) {
  const std::string path = directory / "slot.bin";
  ASSERT_TRUE(WriteSlotFile(path, MakeSlot(), kFingerprint).ok());
  const SavedSlot other = {.tokens = {5}, .state = std::vector<uint8_t>(100000, 3)};
  ASSERT_TRUE(WriteSlotFile(path, other, kFingerprint).ok());
  ExpectSame(ReadSlotFile(path, kFingerprint), other);
  EXPECT_EQ(FilesInDirectory(), 1u);
}

TEST_F(SlotFileOnDiskTest, FailedWritesLeaveNothing) {
  std::filesystem::create_directories(directory / "slot.bin" / "full");  // a directory cannot be replaced by a file
  EXPECT_EQ(WriteSlotFile(directory / "slot.bin", MakeSlot(), kFingerprint).status().code(), StatusCode::kInternal);
  EXPECT_EQ(FilesInDirectory(), 1u);
  EXPECT_EQ(WriteSlotFile(directory / "none" / "slot.bin", MakeSlot(), kFingerprint).status().code(),
            StatusCode::kInternal);
}

TEST_F(SlotFileOnDiskTest, MissingAndStrangeFiles) {
  EXPECT_EQ(ReadSlotFile(directory / "none", kFingerprint).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadSlotFile(directory, kFingerprint).status().code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadSlotFile(directory / "pipe", kFingerprint).status().code(), StatusCode::kInvalidArgument);
  std::ofstream(directory / "empty").close();
  EXPECT_EQ(ReadSlotFile(directory / "empty", kFingerprint).status().code(), StatusCode::kInvalidArgument);
  std::ofstream(directory / "other") << "qsgg" << std::string(100, 'x');
  const Status of_llama_server = ReadSlotFile(directory / "other", kFingerprint).status();
  EXPECT_NE(of_llama_server.message().find("llama-server"), std::string::npos);
  std::ofstream(directory / "text") << std::string(100, 'x');
  EXPECT_EQ(ReadSlotFile(directory / "text", kFingerprint).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace outrider
