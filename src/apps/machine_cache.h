// Files with measurements of this machine that are kept for the next start, below ~/.cache/outrider.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// The file for `key` in the folder `kind`; "" if neither XDG_CACHE_HOME nor HOME is set. The key contains everything
// that the measurement depends on.
std::string MachineCachePath(std::string_view kind, std::string_view key);

// As the operating system names it, with the number of its threads.
std::string ProcessorName();

}  // namespace outrider
