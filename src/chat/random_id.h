// Random names for things on the wire: unguessable enough not to collide, not secret.
#pragma once

#include <cstddef>
#include <string>

namespace outrider {

// `length` letters and digits, different for every call. Thread-safe.
std::string RandomLetters(size_t length);

}  // namespace outrider
