#include "engine/llama/compute_threads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outrider {
namespace {

std::vector<int> Cpus(const CpuOptions& options) {
  const auto params = ThreadPoolParams(options, 2);
  if (!params.ok()) return {-1};
  std::vector<int> cpus;
  for (int cpu = 0; cpu < GGML_MAX_N_THREADS; ++cpu) {
    if (params->cpumask[cpu]) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> CpusOf(const std::string& mask, const std::string& range) {
  CpuOptions options;
  options.mask = mask;
  options.range = range;
  return Cpus(options);
}

using List = std::vector<int>;

TEST(ComputeThreadsTest, MaskAndRangeAddUp) {
  EXPECT_EQ(CpusOf("", ""), List{}) << "any CPU";
  EXPECT_EQ(CpusOf("0x5", ""), (List{0, 2}));
  EXPECT_EQ(CpusOf("F0", ""), (List{4, 5, 6, 7}));
  EXPECT_EQ(CpusOf("1", "2-3"), (List{0, 2, 3}));
  EXPECT_EQ(CpusOf("", "-1"), (List{0, 1}));
  EXPECT_EQ(CpusOf("", "510-"), (List{510, 511}));
}

TEST(ComputeThreadsTest, WhatIsNoMaskOrRangeIsRefused) {
  for (const char* mask : {"xyz", "-1", "0x1g",
                           "1ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
                           "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"}) {
    EXPECT_EQ(CpusOf(mask, ""), List{-1}) << mask;
  }
  for (const char* range : {"3", "3-2", "a-b", "1-2-3", "0-512", "99999999999999999999-"}) {
    EXPECT_EQ(CpusOf("", range), List{-1}) << range;
  }
}

TEST(ComputeThreadsTest, WhatIsNotSetIsInherited) {
  const CpuOptions others{.mask = "3", .range = "5-6", .strict = 1, .priority = 2, .poll = 50};
  EXPECT_EQ(Inherit({}, others), others);
  const CpuOptions own{.mask = "1", .range = "", .strict = 0, .priority = -1, .poll = 0};
  EXPECT_EQ(Inherit(own, others), own);
  const auto params = ThreadPoolParams(own, 3);
  ASSERT_TRUE(params.ok());
  EXPECT_EQ(params->n_threads, 3);
  EXPECT_EQ(params->prio, GGML_SCHED_PRIO_LOW);
  EXPECT_EQ(params->poll, 0u);
  EXPECT_FALSE(params->strict_cpu);
}

}  // namespace
}  // namespace outrider
