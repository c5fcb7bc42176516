#pragma once

#include <string>

namespace outrider {

std::string VersionLine();  // "outrider 0.1.0 (llama.cpp 0.5.0)"

}  // namespace outrider
