// Comparing what others must not guess.
#pragma once

#include <string_view>

namespace outrider {

// In time that depends on the lengths alone.
bool ConstantTimeEquals(std::string_view a, std::string_view b);

}  // namespace outrider
