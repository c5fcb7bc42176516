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
  std::unique_ptr<unsigned char, Free> rgb;  // rows from the top, three bytes for each pixel
};

// Limits of a picture. A small file may claim to be a large picture, so they are checked before it is decoded.
inline constexpr int64_t kMaxPixels = int64_t{1} << 25;
inline constexpr int kMaxSides = 100;  // times the shorter side is the longer one at most

// PNG, JPEG, GIF (its first picture) or BMP. kInvalidArgument if the file is none of them, cut off, damaged or too
// large.
Result<Picture> DecodePicture(std::string_view file);

}  // namespace outrider
