// FNV-1a: a fast 64-bit hash to distinguish files, vocabularies and build strings. An attacker can find collisions, so
// it is not for secrets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace outrider {

class Fnv1a {
 public:
  void Add(std::string_view bytes) {
    for (const char byte : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }

  // The bytes of a plain value, as they lie in memory.
  template <typename T>
  void AddValue(const T& value) {
    Add({reinterpret_cast<const char*>(&value), sizeof value});
  }

  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

// Hashes a file's size and 256 samples of it: cheap for a file of any size, and enough for a model, because other
// models differ in every sample.
Fnv1a HashFileSamples(const std::string& path);

Fnv1a HashFile(const std::string& path);  // all of it

}  // namespace outrider
