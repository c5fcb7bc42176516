// For tests that do the same thing very often and must not grow.
#pragma once

#include <malloc.h>

#include <cstdlib>

namespace outrider {

// Bytes on the heap; 0 under a sanitizer, which has a heap of its own.
inline long HeapBytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<long>(heap.uordblks + heap.hblkhd);
}

// The number of commits in a soak test; OUTRIDER_SOAK_COMMITS overrides it.
inline int SoakCommits(int usually) {
  const char* wish = std::getenv("OUTRIDER_SOAK_COMMITS");
  return wish != nullptr ? std::atoi(wish) : usually;
}

}  // namespace outrider
