// Any bytes as a picture: refused with one sentence, or pixels as many as were promised. The decoder itself is compiled
// here too, and its memory is watched; what else is undefined in C it does in many places, without harm.
#define STB_IMAGE_IMPLEMENTATION
#pragma clang attribute push(__attribute__((no_sanitize("undefined"))), apply_to = function)
#include <stb/stb_image.h>
#pragma clang attribute pop

#include <cstdint>
#include <string_view>

#include "engine/llama/picture.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;
  const Result<Picture> picture = DecodePicture({reinterpret_cast<const char*>(data), size});
  if (!picture.ok()) {
    Require(picture.status().code() == StatusCode::kInvalidArgument, "the file is at fault");
    Require(!picture.status().message().empty(), "a sentence that says why");
    return 0;
  }
  const int64_t pixels = int64_t{picture->width} * picture->height;
  Require(pixels > 0 && pixels <= kMaxPixels, "as many pixels as are allowed");
  uint64_t sum = 0;
  for (int64_t i = 0; i < 3 * pixels; ++i) sum += picture->rgb.get()[i];
  Require(sum <= 255 * 3 * static_cast<uint64_t>(pixels), "all of them are there");
  return 0;
}
