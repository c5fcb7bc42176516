#include "engine/llama/picture.h"

#include <fmt/format.h>
#include <stb/stb_image.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace outrider {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kPngBegin = "\x89PNG\r\n\x1a\n"sv, kJpegBegin = "\xff\xd8\xff"sv, kJpegEnd = "\xff\xd9"sv;
constexpr std::array<std::string_view, 5> kBeginnings = {kPngBegin, kJpegBegin, "GIF87a"sv, "GIF89a"sv, "BM"sv};

unsigned ByteAt(std::string_view bytes, size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

uint32_t LittleEndian(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | ByteAt(bytes, at + i);
  return value;
}

// stb_image reads zeros behind the end of a BMP. Some programs leave out what fills up the last row.
bool BmpIsCutOff(std::string_view file) {
  constexpr uint32_t kOldHeader = 12;
  constexpr uint64_t kFilling = 3;
  const bool old = LittleEndian(file, 14, 4) == kOldHeader;
  const uint64_t width = LittleEndian(file, 18, old ? 2 : 4);
  const auto signed_height = static_cast<int32_t>(LittleEndian(file, old ? 20 : 22, old ? 2 : 4));
  const auto height = static_cast<uint64_t>(std::abs(int64_t{signed_height}));
  const uint64_t bits = LittleEndian(file, old ? 24 : 28, 2);
  const uint64_t row_bytes = (width * bits + 31) / 32 * 4;
  return LittleEndian(file, 10, 4) + row_bytes * height > file.size() + kFilling;
}

// Whether a GIF ends before its first picture does: a chain of blocks, each with its length before it, and an empty
// one.
bool GifIsCutOff(std::string_view file) {
  constexpr unsigned kExtension = 0x21, kPicture = 0x2c;
  const auto table_bytes = [](unsigned flags) { return (flags & 0x80) != 0 ? size_t{6} << (flags & 7) : 0; };
  size_t at = 13 + table_bytes(ByteAt(file, 10));
  while (at < file.size()) {
    const bool picture = ByteAt(file, at) == kPicture;
    if (!picture && ByteAt(file, at) != kExtension) return false;  // stb_image refuses it
    at += picture ? 11 + table_bytes(ByteAt(file, at + 9)) : 2;
    while (ByteAt(file, at) != 0) at += 1 + ByteAt(file, at);
    if (picture) return at >= file.size();
    ++at;
  }
  return true;
}

// A JPEG that was cut off would be decoded with grey where the rest is missing. Some cameras append data of their own.
bool IsCutOff(std::string_view file) {
  constexpr size_t kMaxAppended = 4096;
  if (file.starts_with("BM")) return BmpIsCutOff(file);
  if (file.starts_with("GIF8")) return GifIsCutOff(file);
  if (!file.starts_with(kJpegBegin)) return false;
  return file.substr(file.size() - std::min(file.size(), kMaxAppended)).find(kJpegEnd) == file.npos;
}

bool HasTooManyScans(std::string_view file) {
  constexpr std::string_view kScan = "\xff\xda"sv;
  if (!file.starts_with(kJpegBegin)) return false;
  int scans = 0;
  for (size_t at = 0; (at = file.find(kScan, at)) != file.npos && scans <= kMaxScans; ++at) ++scans;
  return scans > kMaxScans;
}

uint32_t BigEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

struct PngChunk {
  std::string_view type, data;
};

// Up to the end of the picture, or to where the file is cut off.
std::vector<PngChunk> ChunksOf(std::string_view png) {
  constexpr size_t kAround = 12;  // bytes: length, type, and a checksum after the data
  std::vector<PngChunk> chunks;
  std::string_view rest = png.substr(kPngBegin.size());
  while (rest.size() >= kAround && (chunks.empty() || chunks.back().type != "IEND")) {
    const size_t length = BigEndian(rest);
    if (length > rest.size() - kAround) break;
    chunks.push_back({rest.substr(4, 4), rest.substr(8, length)});
    rest.remove_prefix(length + kAround);
  }
  return chunks;
}

// Bytes that the pixels of a PNG have at most before they are compressed; 0 if it does not say.
size_t MaxRawBytes(const PngChunk& header) {
  constexpr std::array<uint64_t, 7> kChannels = {1, 0, 3, 1, 2, 0, 4};
  constexpr size_t kDepth = 8, kColours = 9, kHeaderBytes = 13;
  if (header.type != "IHDR" || header.data.size() != kHeaderBytes) return 0;
  const uint64_t width = BigEndian(header.data), height = BigEndian(header.data.substr(4));
  const auto depth = static_cast<unsigned char>(header.data[kDepth]);
  const auto colours = static_cast<unsigned char>(header.data[kColours]);
  if (colours >= kChannels.size() || depth > 16 || width * height > static_cast<uint64_t>(kMaxPixels)) return 0;
  // An interlaced picture has fewer than 2 * height + 8 rows, each with a byte before it and one that is not full.
  return width * height * depth * kChannels[colours] / 8 + 2 * (2 * height + 8);
}

// Whether what a PNG has compressed is no more than its pixels. stb_image would inflate all of it, which may be a
// thousand times as much as was sent.
bool HasOnlyItsPixels(std::string_view png) {
  const std::vector<PngChunk> chunks = ChunksOf(png);
  const size_t most = chunks.empty() ? 0 : MaxRawBytes(chunks[0]);
  std::string packed;
  for (const PngChunk& chunk : chunks) {
    if (chunk.type == "CgBI") return false;  // Apple's own format, in which the same bytes mean something else
    if (chunk.type == "IDAT") packed += chunk.data;
  }
  if (most == 0 || packed.empty()) return false;
  const std::unique_ptr<char[]> raw(new char[most]);  // NOLINT: not filled with zeros
  return stbi_zlib_decode_buffer(raw.get(), static_cast<int>(most), packed.data(), static_cast<int>(packed.size())) > 0;
}

// After stb_image has failed.
Status Damaged() {
  const char* reason = stbi_failure_reason();
  return InvalidArgument(
      fmt::format("the picture is cut off or damaged{}", reason ? fmt::format(" ({})", reason) : ""));
}

Status CheckSize(int width, int height) {
  if (width <= 0 || height <= 0) return InvalidArgument("the picture has no pixels");
  if (int64_t{width} * height > kMaxPixels) {
    return InvalidArgument(
        fmt::format("the picture has {} x {} pixels; at most {} million are decoded: make it smaller", width, height,
                    kMaxPixels / 1'000'000));
  }
  if (std::max(width, height) > int64_t{kMaxSides} * std::min(width, height)) {
    return InvalidArgument(fmt::format("the picture has {} x {} pixels; one side may be at most {} times the other",
                                       width, height, kMaxSides));
  }
  return {};
}

}  // namespace

void Picture::Free::operator()(unsigned char* pixels) const {
  stbi_image_free(pixels);
}

Result<Picture> MeasurePicture(std::string_view file) {
  const bool known = std::any_of(kBeginnings.begin(), kBeginnings.end(),
                                 [&](std::string_view beginning) { return file.starts_with(beginning); });
  if (!known) return InvalidArgument("the file is no picture that can be read: PNG, JPEG, GIF and BMP can");
  if (file.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return InvalidArgument("the file is too large");
  int width = 0, height = 0, channels = 0;
  const auto* bytes = reinterpret_cast<const stbi_uc*>(file.data());
  if (stbi_info_from_memory(bytes, static_cast<int>(file.size()), &width, &height, &channels) == 0) return Damaged();
  if (file.starts_with("BM") && height > std::numeric_limits<int>::min()) height = std::abs(height);  // top-down
  if (Status status = CheckSize(width, height); !status.ok()) return status;
  Picture picture;
  picture.width = static_cast<uint32_t>(width);
  picture.height = static_cast<uint32_t>(height);
  return picture;
}

Result<Picture> DecodePicture(std::string_view file) {
  Result<Picture> picture = MeasurePicture(file);
  if (!picture.ok()) return picture;
  if (IsCutOff(file)) return InvalidArgument("the picture is cut off");
  if (HasTooManyScans(file)) return InvalidArgument(fmt::format("the picture has more than {} scans", kMaxScans));
  if (file.starts_with(kPngBegin) && !HasOnlyItsPixels(file)) {
    return InvalidArgument("the picture is cut off or damaged: what it has is not as many pixels as it says");
  }
  const auto* bytes = reinterpret_cast<const stbi_uc*>(file.data());
  int width = 0, height = 0, channels = 0;
  picture->rgb.reset(stbi_load_from_memory(bytes, static_cast<int>(file.size()), &width, &height, &channels,
                                           /*desired_channels=*/3));
  if (picture->rgb == nullptr) return Damaged();
  // The file said so when it was measured; what is read is what is there.
  picture->width = static_cast<uint32_t>(width);
  picture->height = static_cast<uint32_t>(height);
  return picture;
}

}  // namespace outrider
