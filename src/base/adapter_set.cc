#include "base/adapter_set.h"

#include <fmt/format.h>

namespace outrider {

AdapterSet AdaptersOf(const std::vector<float>& scales) {
  AdapterSet adapters;
  for (size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] != 0) adapters.push_back({static_cast<int>(i), scales[i]});
  }
  return adapters;
}

std::string Describe(const AdapterSet& adapters) {
  std::string text;
  for (const AdapterScale& adapter : adapters) {
    text += fmt::format("{}{}x{}", text.empty() ? "" : ", ", adapter.id, adapter.scale);
  }
  return text;
}

}  // namespace outrider
