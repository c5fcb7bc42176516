#include "base/freed_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace outrider {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

constexpr size_t kMib = 1 << 20;

size_t ResidentBytes() {
  size_t pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%*u %zu", &pages) != 1) std::abort();
  std::fclose(file);
  return pages * static_cast<size_t>(getpagesize());
}

// How much the process keeps when each of some threads has used `each` bytes in blocks of `block`, all at once, as
// workers do that answer large requests, and is idle now.
size_t KeptBytes(int threads, size_t each, size_t block) {
  void* volatile large = std::malloc(31 * kMib);  // would raise the thresholds (volatile: so that it is not left out)
  std::free(large);
  const size_t before = ResidentBytes();
  std::latch used(threads), freed(threads), end(1);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      {
        std::vector<std::string> blocks;
        for (size_t size = 0; size < each; size += block) blocks.emplace_back(block, 'x');
        used.arrive_and_wait();
      }
      freed.count_down();
      end.wait();
    });
  }
  freed.wait();
  GiveFreedMemoryBack();
  const size_t after = ResidentBytes();
  end.count_down();
  for (std::thread& worker : workers) worker.join();
  return after - std::min(after, before);
}

// In processes of their own, since the limits stay.
TEST(FreedMemoryDeathTest, IdleThreadsKeepLittle) {
  constexpr int kThreads = 8;
  for (const size_t block : {8 * kMib, kMib / 2, kMib / 16}) {
    EXPECT_EXIT(
        {
          LimitFreedMemory();
          const size_t kept = KeptBytes(kThreads, 16 * kMib, block);
          std::fprintf(stderr, "%zu MiB kept", kept / kMib);
          _exit(kept < kThreads * 3 * kMib ? 0 : 1);
        },
        testing::ExitedWithCode(0), "")
        << "blocks of " << block;
  }
}

#endif

}  // namespace
}  // namespace outrider
