// What was found out about this machine once and is kept for the next start, below ~/.cache/outrider.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// The file for `key` (everything that what is kept depends on) in the folder `kind`; "" if there is no home for it.
std::string MachineCachePath(std::string_view kind, std::string_view key);

// As the operating system names it, with the number of its threads.
std::string ProcessorName();

}  // namespace outrider
