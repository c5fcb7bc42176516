#include "chat/random_id.h"

#include <random>

namespace outrider {

std::string MakeId(std::string_view prefix) {
  static constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  static constexpr size_t kLength = 24;
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::uniform_int_distribution<size_t> index(0, kLetters.size() - 1);
  std::string id(prefix);
  for (size_t i = 0; i < kLength; ++i) id += kLetters[index(random)];
  return id;
}

}  // namespace outrider
