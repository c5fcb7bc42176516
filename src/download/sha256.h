// SHA-256 of a file.
#pragma once

#include <string>

#include "base/status.h"

namespace outrider {

// 64 lower-case hexadecimal digits.
Result<std::string> Sha256OfFile(const std::string& path);

}  // namespace outrider
