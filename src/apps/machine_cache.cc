#include "apps/machine_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/hash.h"

namespace outrider {

std::string MachineCachePath(std::string_view kind, std::string_view key) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string folder;
  if (cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (home != nullptr && *home != '\0') {
    folder = std::string(home) + "/.cache";
  } else {
    return "";
  }
  Fnv1a hash;
  hash.Add(key);
  return fmt::format("{}/outrider/{}/{:016x}", folder, kind, hash.hash());
}

std::string ProcessorName() {
  std::string name = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    name = line.substr(std::min(line.size(), line.find(':') + 2));
    break;
  }
  return fmt::format("{} x {}", name, std::thread::hardware_concurrency());
}

}  // namespace outrider
