// EnergyMeter: the energy that the machine has used, where it can be read: processors by RAPL, NVIDIA GPUs by NVML.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace outrider {

class EnergyMeter {
 public:
  // `powercap`: folder in which the kernel lists the domains of RAPL.
  explicit EnergyMeter(const std::string& powercap = "/sys/class/powercap");
  ~EnergyMeter();

  // Joules since it was made, of all processors and GPUs that can be read; -1 if there are none.
  double Joules();

 private:
  // A counter of microjoules that begins again at `range`.
  struct Domain {
    std::string path;
    double range = 0, last = 0, total = 0;
  };
  struct Gpus;

  std::vector<Domain> domains_;
  std::unique_ptr<Gpus> gpus_;
};

}  // namespace outrider
