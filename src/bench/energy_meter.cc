#include "bench/energy_meter.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <regex>

#include "base/file.h"

namespace outrider {
namespace {

std::optional<double> ReadNumber(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text || text->empty()) return std::nullopt;
  return std::strtod(text->c_str(), nullptr);
}

}  // namespace

// NVML, if the machine has it; the library comes with the driver.
struct EnergyMeter::Gpus {
  using Device = void*;

  Gpus() : library(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (library == nullptr) return;
    const auto init = Find<int()>("nvmlInit_v2");
    const auto count_devices = Find<int(unsigned*)>("nvmlDeviceGetCount_v2");
    const auto get = Find<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
    energy = Find<int(Device, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption");
    unsigned count = 0;
    if (init == nullptr || count_devices == nullptr || get == nullptr || energy == nullptr) return;
    if (init() != 0 || count_devices(&count) != 0) return;
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      unsigned long long millijoules = 0;
      if (get(i, &device) == 0 && energy(device, &millijoules) == 0) devices.push_back(device);
    }
    at_first = Joules();
  }
  ~Gpus() {
    if (library == nullptr) return;
    if (const auto shutdown = Find<int()>("nvmlShutdown")) shutdown();
    dlclose(library);
  }
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

  double Joules() const {
    double joules = 0;
    for (const Device device : devices) {
      unsigned long long millijoules = 0;
      if (energy(device, &millijoules) == 0) joules += static_cast<double>(millijoules) / 1000;
    }
    return joules;
  }

  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library, name));
  }

  void* library;
  int (*energy)(Device, unsigned long long*) = nullptr;
  std::vector<Device> devices;
  double at_first = 0;
};

EnergyMeter::EnergyMeter(const std::string& powercap) : gpus_(std::make_unique<Gpus>()) {
  // intel-rapl:0 is a package, intel-rapl:0:1 a part of it; a domain called psys includes the packages.
  static const std::regex package("intel-rapl:[0-9]+");
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(powercap, ignored)) {
    if (!std::regex_match(entry.path().filename().string(), package)) continue;
    if (!ReadFile((entry.path() / "name").string()).value_or("").starts_with("package")) continue;
    Domain domain;
    domain.path = (entry.path() / "energy_uj").string();
    const auto now = ReadNumber(domain.path);
    if (!now) continue;
    domain.last = *now;
    domain.range = ReadNumber((entry.path() / "max_energy_range_uj").string()).value_or(0);
    domains_.push_back(std::move(domain));
  }
}

EnergyMeter::~EnergyMeter() = default;

double EnergyMeter::Joules() {
  if (domains_.empty() && gpus_->devices.empty()) return -1;
  double joules = gpus_->devices.empty() ? 0 : gpus_->Joules() - gpus_->at_first;
  for (Domain& domain : domains_) {
    const double now = ReadNumber(domain.path).value_or(domain.last);
    domain.total += now - domain.last + (now < domain.last ? domain.range : 0);
    domain.last = now;
    joules += domain.total / 1e6;
  }
  return joules;
}

}  // namespace outrider
