#include "chat/random_id.h"

#include <random>
#include <string_view>

namespace outrider {

std::string RandomLetters(size_t length) {
  static constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::uniform_int_distribution<size_t> index(0, kLetters.size() - 1);
  std::string letters(length, '\0');
  for (char& letter : letters) letter = kLetters[index(random)];
  return letters;
}

}  // namespace outrider
