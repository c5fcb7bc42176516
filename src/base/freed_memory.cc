#include "base/freed_memory.h"

#include <malloc.h>

namespace outrider {
namespace {

// Above what a step of the scheduler needs for a while: a block that comes from the system costs a page fault for each
// page. As in the allocator's own rule, the end may be twice as large as the largest block in it.
constexpr int kLargeBlock = 1 << 20;
constexpr int kFreeEnd = 2 * kLargeBlock;

}  // namespace

void LimitFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  mallopt(M_TRIM_THRESHOLD, kFreeEnd);
}

void GiveFreedMemoryBack() {
  malloc_trim(0);
}

}  // namespace outrider
