#include "apps/version.h"

#include <fmt/format.h>

#include "engine/llama/backend.h"

namespace outrider {

std::string VersionLine() {
  return fmt::format("outrider {} (llama.cpp {})", OUTRIDER_VERSION, LlamaVersion());
}

}  // namespace outrider
