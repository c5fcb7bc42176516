#include "base/memory_reserve.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace outrider {
namespace {

// Enough for the parts of a request of a million values. The allocator gives blocks of more than 32 MiB back to the
// system at once; untouched, they take no memory but their addresses.
constexpr size_t kReserveBytes = size_t{40} << 20;

std::atomic<void*> reserve = nullptr;

[[noreturn]] void UseReserve() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

}  // namespace

void KeepMemoryReserve() {
  std::set_new_handler(UseReserve);
  if (reserve.load() != nullptr) return;
  void* filled = std::malloc(kReserveBytes);
  void* none = nullptr;
  if (!reserve.compare_exchange_strong(none, filled)) std::free(filled);
}

}  // namespace outrider
