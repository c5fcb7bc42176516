#include "apps/states_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/json.h"

namespace outrider {
namespace {

constexpr std::string_view kMagic = "ORSTATE1";
static_assert(std::endian::native == std::endian::little, "the file has the bytes of numbers as they are in memory");

// The nearest number of 16 bits; what is too large becomes the largest.
uint16_t ToHalf(float value) {
  constexpr uint32_t kTooLarge = 0x477FF000, kSmallestNormal = 0x38800000;
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (std::isnan(value)) return 0;
  if (magnitude >= kTooLarge) return sign | 0x7BFF;
  if (magnitude < kSmallestNormal)
    return sign | static_cast<uint16_t>(std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f));
  magnitude += 0xFFF + ((magnitude >> 13) & 1);  // ties go to the even number
  return sign | static_cast<uint16_t>((magnitude - 0x38000000) >> 13);
}

template <typename T>
char* Put(T value, char* to) {
  std::memcpy(to, &value, sizeof(value));
  return to + sizeof(value);
}

double LogOfSum(std::span<const float> logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

// Indexes of the largest logits, largest first; of equal ones the first.
std::vector<std::pair<float, int>> Largest(std::span<const float> logits, int count) {
  const auto before = [](const auto& a, const auto& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  };
  std::vector<std::pair<float, int>> heap;  // the worst on top
  heap.reserve(static_cast<size_t>(count) + 1);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (heap.size() == static_cast<size_t>(count) && logits[i] <= heap.front().first) continue;
    heap.emplace_back(logits[i], static_cast<int>(i));
    std::push_heap(heap.begin(), heap.end(), before);
    if (heap.size() <= static_cast<size_t>(count)) continue;
    std::pop_heap(heap.begin(), heap.end(), before);
    heap.pop_back();
  }
  std::sort_heap(heap.begin(), heap.end(), before);
  return heap;
}

}  // namespace

std::string EncodeStatesHead(const StatesHead& head) {
  std::string bytes(kMagic);
  const auto add = [&](size_t number) {
    const auto value = static_cast<uint32_t>(number);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  add(head.layers.size());
  for (const int number : {head.width, head.top, head.vocabulary}) add(static_cast<size_t>(number));
  for (const int layer : head.layers) add(static_cast<size_t>(layer));
  return bytes;
}

size_t StatesRecordBytes(const StatesHead& head) {
  const size_t states = head.layers.size() * static_cast<size_t>(head.width);
  return 8 + static_cast<size_t>(head.top) * 6 + states * 2;
}

void EncodeStatesRecord(const StatesHead& head, int text, Token token, std::span<const float> logits,
                        std::span<const float> states, std::span<char> to) {
  assert(to.size() == StatesRecordBytes(head));
  const auto likeliest = Largest(logits, head.top);
  const double all = LogOfSum(logits);
  char* at = Put<int32_t>(token, Put<int32_t>(text, to.data()));
  for (const auto& [logit, id] : likeliest) at = Put<int32_t>(id, at);
  for (const auto& [logit, id] : likeliest) at = Put(ToHalf(static_cast<float>(logit - all)), at);
  for (const float state : states) at = Put(ToHalf(state), at);
}

Result<std::vector<Token>> ParseTokenLine(std::string_view line, int vocabulary) {
  const auto parsed = ParseJson(line);
  if (!parsed.ok()) return InvalidArgument("is not JSON: " + parsed.status().message());
  if (!parsed->is_object() || !parsed->contains("tokens") || !(*parsed)["tokens"].is_array())
    return InvalidArgument("has no list of tokens: {\"tokens\": [1, 2, 3]}");
  std::vector<Token> tokens;
  for (const Json& token : (*parsed)["tokens"]) {
    const bool known = token.is_number_unsigned() && token.get<uint64_t>() < static_cast<uint64_t>(vocabulary);
    if (!known) {
      return InvalidArgument(
          fmt::format("has {}, which is not one of the model's {} tokens", DumpJson(token).substr(0, 80), vocabulary));
    }
    tokens.push_back(token.get<Token>());
  }
  if (tokens.empty()) return InvalidArgument("has no tokens");
  return tokens;
}

}  // namespace outrider
