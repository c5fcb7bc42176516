// What a fuzz target checks on top of what the sanitizers see.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace outrider {

// Ends the run, and libFuzzer keeps the input, unless `holds`.
inline void Require(bool holds, const char* invariant) {
  if (holds) return;
  std::fprintf(stderr, "broken invariant: %s\n", invariant);
  std::abort();
}

}  // namespace outrider
