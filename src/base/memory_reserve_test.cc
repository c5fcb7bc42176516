#include "base/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <new>

#include "base/json.h"

namespace outrider {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// With `more` bytes beyond what is used now.
void LimitMemory(size_t more) {
  size_t pages = 0, data_pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%*u %*u %*u %*u %*u %zu", &data_pages) != 1) std::abort();
  std::fclose(file);
  pages = data_pages + more / 4096;
  const rlimit limit{pages * 4096, pages * 4096};
  setrlimit(RLIMIT_DATA, &limit);
}

// In a process of its own, since the limit stays: a list that does not fit is destroyed on the way out.
TEST(MemoryReserveDeathTest, WhatIsHalfBuiltCanBeDestroyed) {
  std::string text = "[0";
  for (int i = 0; i < 900'000; ++i) text += ",[]";
  text += "]";
  EXPECT_EXIT(
      {
        KeepMemoryReserve();
        LimitMemory(size_t{20} << 20);
        try {
          ParseJson(text).ok();
          _exit(1);
        } catch (const std::bad_alloc&) {
          _exit(0);
        }
      },
      testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
}  // namespace outrider
