// Comparing secrets (API keys, tokens) so that the time taken does not help to guess them.
#pragma once

#include <string_view>

namespace outrider {

// The time depends on the lengths only, not on where the strings differ.
bool ConstantTimeEquals(std::string_view a, std::string_view b);

}  // namespace outrider
