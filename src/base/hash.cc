#include "base/hash.h"

#include <fstream>
#include <vector>

namespace outrider {

Fnv1a HashFileSamples(const std::string& path) {
  constexpr uint64_t kSamples = 256, kSampleBytes = 1024;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<uint64_t>(file.tellg());
  Fnv1a hash;
  hash.AddValue(size);
  std::vector<char> sample(kSampleBytes);
  for (uint64_t i = 0; i < kSamples; ++i) {
    file.seekg(static_cast<std::streamoff>(size / kSamples * i));
    file.read(sample.data(), static_cast<std::streamsize>(sample.size()));
    hash.Add({sample.data(), static_cast<size_t>(file.gcount())});
    file.clear();
  }
  return hash;
}

Fnv1a HashFile(const std::string& path) {
  constexpr size_t kPartBytes = size_t{1} << 20;
  std::ifstream file(path, std::ios::binary);
  Fnv1a hash;
  std::vector<char> part(kPartBytes);
  while (file) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    hash.Add({part.data(), static_cast<size_t>(file.gcount())});
  }
  return hash;
}

}  // namespace outrider
