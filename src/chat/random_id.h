// Random names for things on the wire: unguessable enough not to collide, not secret.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// "chatcmpl-…", "call_…": `prefix` and 24 letters and digits, different for every call. Thread-safe.
std::string MakeId(std::string_view prefix);

}  // namespace outrider
