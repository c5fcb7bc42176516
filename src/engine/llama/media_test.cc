// Rows of values in the real library, and pictures from anybody.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "engine/llama/llama_engine.h"
#include "engine/llama/picture.h"
#include "engine/padded_engine.h"

namespace outrider {
namespace {

class ValuesTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ModelOptions options;
    options.path = std::string(OUTRIDER_MODELS_DIR) + "/" + GetParam();
    auto model = LlamaModel::Load(options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *model;
    ContextOptions context;
    context.context_tokens = 4 * 512;
    context.threads = 2;
    auto engine = LlamaEngine::Create(model_, context);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = std::move(*engine);
    std::mt19937 random(3);
    std::uniform_real_distribution<float> value(-0.3f, 0.3f);
    values_.resize(static_cast<size_t>(kRows) * static_cast<size_t>(model_->EmbeddingSize()));
    for (float& each : values_) each = value(random);
  }

  const float* Row(int row) const { return &values_[static_cast<size_t>(row * model_->EmbeddingSize())]; }

  // Logits after five tokens, the rows of values in slices, and five more tokens, beside so many other sequences.
  std::vector<float> Run(Engine& engine, int slice, SeqId neighbours = 0) {
    std::vector<float> logits;
    const SeqId last = neighbours;
    for (SeqId seq = 0; seq <= last; ++seq) engine.TruncateTo(seq, 0);
    const auto decode = [&](Pos begin, Pos end) {
      Batch batch;
      int row = -1;
      for (SeqId seq = 0; seq <= last; ++seq) {
        for (Pos pos = begin; pos < end; ++pos) {
          const bool is_value = pos >= kText && pos < kText + kRows;
          // Neighbours read other values: those of the row after.
          const float* values = is_value ? Row((pos - kText + (last - seq)) % kRows) : nullptr;
          row = batch.Add({static_cast<Token>(100 + pos), pos, seq, pos == end - 1, false, values});
        }
      }
      const Status status = engine.Decode(batch);
      EXPECT_TRUE(status.ok()) << status.message();
      logits.assign(engine.Logits(row).begin(), engine.Logits(row).end());
    };
    decode(0, kText);
    for (Pos pos = kText; pos < kText + kRows; pos += slice) decode(pos, std::min(pos + slice, kText + kRows));
    decode(kText + kRows, 2 * kText + kRows);
    return logits;
  }

  static constexpr Pos kText = 5, kRows = 70;
  std::shared_ptr<LlamaModel> model_;
  std::unique_ptr<LlamaEngine> engine_;
  std::vector<float> values_;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(ValuesTest, LogitsDoNotDependOnSlicesOrNeighbours) {
  const auto reference = Run(*engine_, 1);
  for (const int slice : {2, 7, 16, 33, 70}) EXPECT_TRUE(SameBits(Run(*engine_, slice), reference)) << slice;
  EXPECT_TRUE(SameBits(Run(*engine_, 16, 3), reference));
  std::swap(values_.front(), values_.back());
  EXPECT_FALSE(SameBits(Run(*engine_, 16), reference)) << "the values are read";
}

TEST_P(ValuesTest, PaddingReadsThemToo) {
  if (engine_->info().rollback != Rollback::kDropCells) return;
  const auto reference = Run(*engine_, 70);
  PaddedEngine padded(*engine_);
  EXPECT_TRUE(SameBits(Run(padded, 16), reference));
}

INSTANTIATE_TEST_SUITE_P(Models, ValuesTest, testing::Values("smollm2-draft-16m.gguf", "smollm2-hybrid-19m.gguf"),
                         [](const auto& name) {
                           return std::string(name.param).find("hybrid") == std::string::npos ? "transformer"
                                                                                              : "hybrid";
                         });

// A BMP that says it has this size, with `pixels` bytes of pixels.
std::string Bmp(int32_t width, int32_t height, size_t pixels) {
  std::string file(54 + pixels, '\x40');
  const auto put = [&](size_t at, int32_t value, size_t bytes) { std::memcpy(&file[at], &value, bytes); };
  file[0] = 'B';
  file[1] = 'M';
  put(2, static_cast<int32_t>(file.size()), 4);
  put(6, 0, 4);
  put(10, 54, 4);
  put(14, 40, 4);
  put(18, width, 4);
  put(22, height, 4);
  put(26, 1, 2);
  put(28, 24, 2);
  for (const size_t at : {30, 34, 38, 42, 46, 50}) put(at, 0, 4);
  return file;
}

TEST(PictureTest, PixelsComeOut) {
  const Result<Picture> picture = DecodePicture(Bmp(4, 2, 24));
  ASSERT_TRUE(picture.ok()) << picture.status().message();
  EXPECT_EQ(picture->width, 4u);
  EXPECT_EQ(picture->height, 2u);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(picture->rgb.get()[i], 0x40);
}

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string PngChunk(const std::string& type, const std::string& data) {
  return BigEndian(static_cast<uint32_t>(data.size())) + type + data + BigEndian(0);  // nobody looks at the checksum
}

// A PNG of 4 x 4 pixels whose compressed part has so many bytes.
std::string Png(size_t raw_bytes, const std::string& before = "") {
  const auto size = static_cast<uint16_t>(raw_bytes), complement = static_cast<uint16_t>(~size);
  std::string packed = "\x78\x01\x01";  // one stored block
  for (const uint16_t value : {size, complement}) {
    packed += static_cast<char>(value & 0xff);
    packed += static_cast<char>(value >> 8);
  }
  packed += std::string(raw_bytes, '\0') + std::string(4, '\0');
  const std::string header = BigEndian(4) + BigEndian(4) + std::string("\x08\x02\x00\x00\x00", 5);
  return "\x89PNG\r\n\x1a\n" + PngChunk("IHDR", header) + before + PngChunk("IDAT", packed) + PngChunk("IEND", "");
}

TEST(PictureTest, APngHasNoMoreThanItsPixels) {
  constexpr size_t kPixels = 4 * (1 + 4 * 3);
  EXPECT_TRUE(DecodePicture(Png(kPixels)).ok()) << DecodePicture(Png(kPixels)).status().message();
  EXPECT_NE(DecodePicture(Png(kPixels - 1)).status().message().find("damaged"), std::string::npos);
  EXPECT_NE(DecodePicture(Png(2000)).status().message().find("not as many pixels"), std::string::npos);
  EXPECT_FALSE(DecodePicture(Png(kPixels, PngChunk("CgBI", "    "))).ok());
}

TEST(PictureTest, AJpegHasNotTooManyScans) {
  std::string file("\xff\xd8\xff\xc0\x00\x11\x08\x00\x04\x00\x04\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00", 21);
  for (int i = 0; i <= kMaxScans; ++i) file += "\xff\xda";
  file += "\xff\xd9";
  EXPECT_TRUE(MeasurePicture(file).ok()) << MeasurePicture(file).status().message();
  EXPECT_NE(DecodePicture(file).status().message().find("scans"), std::string::npos);
}

TEST(PictureTest, SizesAreCheckedBeforeDecoding) {
  const auto refusal = [](const std::string& file) { return DecodePicture(file).status().message(); };
  EXPECT_NE(refusal(Bmp(100'000, 100'000, 24)).find("33 million are decoded"), std::string::npos);
  EXPECT_NE(refusal(Bmp(1000, 4, 24)).find("times the other"), std::string::npos);
  EXPECT_NE(refusal(Bmp(0, 4, 24)), "");
  EXPECT_NE(refusal("GIF89a"), "");
  EXPECT_NE(refusal("RIFF....WEBP").find("PNG, JPEG, GIF and BMP"), std::string::npos);
  EXPECT_NE(refusal(""), "");
}

}  // namespace
}  // namespace outrider
