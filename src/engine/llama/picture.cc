#include "engine/llama/picture.h"

#include <fmt/format.h>
#include <stb/stb_image.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace outrider {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kJpegBegin = "\xff\xd8\xff"sv, kJpegEnd = "\xff\xd9"sv;
constexpr std::array<std::string_view, 5> kBeginnings = {"\x89PNG\r\n\x1a\n"sv, kJpegBegin, "GIF87a"sv, "GIF89a"sv,
                                                         "BM"sv};

// A JPEG that was cut off would be decoded with grey where the rest is missing. Some cameras append data of their own.
bool IsCutOff(std::string_view file) {
  constexpr size_t kMaxAppended = 4096;
  if (!file.starts_with(kJpegBegin)) return false;
  return file.substr(file.size() - std::min(file.size(), kMaxAppended)).find(kJpegEnd) == file.npos;
}

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

Result<Picture> DecodePicture(std::string_view file) {
  const bool known = std::any_of(kBeginnings.begin(), kBeginnings.end(),
                                 [&](std::string_view beginning) { return file.starts_with(beginning); });
  if (!known) return InvalidArgument("the file is no picture that can be read: PNG, JPEG, GIF and BMP can");
  if (file.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return InvalidArgument("the file is too large");
  if (IsCutOff(file)) return InvalidArgument("the picture is cut off");
  const auto* bytes = reinterpret_cast<const stbi_uc*>(file.data());
  const int size = static_cast<int>(file.size());
  int width = 0, height = 0, channels = 0;
  if (stbi_info_from_memory(bytes, size, &width, &height, &channels) == 0) return Damaged();
  if (Status status = CheckSize(width, height); !status.ok()) return status;
  Picture picture;
  picture.rgb.reset(stbi_load_from_memory(bytes, size, &width, &height, &channels, /*desired_channels=*/3));
  if (picture.rgb == nullptr) return Damaged();
  picture.width = static_cast<uint32_t>(width);
  picture.height = static_cast<uint32_t>(height);
  return picture;
}

}  // namespace outrider
