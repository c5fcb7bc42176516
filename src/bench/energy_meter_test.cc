#include "bench/energy_meter.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace outrider {
namespace {

TEST(EnergyMeterTest, AddsUpPackagesAcrossTheEndOfTheirCounters) {
  const std::string folder = testing::TempDir() + "/powercap";
  std::filesystem::remove_all(folder);
  const auto write = [&](const std::string& domain, const std::string& energy, const std::string& name = "package-0") {
    ASSERT_TRUE(KeepFile(folder + "/" + domain + "/name", name + "\n").ok());
    ASSERT_TRUE(KeepFile(folder + "/" + domain + "/energy_uj", energy + "\n").ok());
    ASSERT_TRUE(KeepFile(folder + "/" + domain + "/max_energy_range_uj", "10000000\n").ok());
  };
  write("intel-rapl:0", "9000000");
  write("intel-rapl:0:0", "9000000");  // a part of the package
  write("intel-rapl:1", "1000000");
  write("intel-rapl:2", "0", "psys");  // all of it once more
  EnergyMeter meter(folder);
  EXPECT_EQ(meter.Joules(), 0);
  write("intel-rapl:0", "500000");
  write("intel-rapl:1", "1250000");
  write("intel-rapl:2", "9000000", "psys");
  EXPECT_NEAR(meter.Joules(), 1.5 + 0.25, 1e-9);
  EXPECT_NEAR(meter.Joules(), 1.5 + 0.25, 1e-9);
}

}  // namespace
}  // namespace outrider
