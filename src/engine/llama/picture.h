// Decoding picture files that anybody may have sent.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace outrider {

struct Picture {
  struct Free {
    void operator()(unsigned char* pixels) const;
  };

  uint32_t width = 0, height = 0;
  std::unique_ptr<unsigned char, Free> rgb;  // rows from the top, three bytes for each pixel; null = not decoded
};

// Limits of a picture. A small file may claim to be a large picture, so they are checked before it is decoded.
inline constexpr int64_t kMaxPixels = int64_t{1} << 25;
inline constexpr int kMaxSides = 100;  // times the shorter side is the longer one at most
inline constexpr int kMaxScans = 100;  // of a JPEG: each may take as long as decoding all pixels, in a few bytes

// The size of a picture, from the beginning of its file. kInvalidArgument if the file is no PNG, JPEG, GIF or BMP, or
// too large.
Result<Picture> MeasurePicture(std::string_view file);

// The picture (of a GIF its first one). kInvalidArgument if the file cannot be measured, or is cut off or damaged.
// Takes memory for some 20 bytes for each pixel that may be there.
Result<Picture> DecodePicture(std::string_view file);

}  // namespace outrider
