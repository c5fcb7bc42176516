// AdapterSet: which adapters (LoRA) a text is computed with, and how strongly each of them.
//
// What was computed with one set is of no use with another: neither the memory of a prompt nor what is known about
// earlier texts. So sets are compared wherever something is kept.
#pragma once

#include <string>
#include <vector>

namespace outrider {

struct AdapterScale {
  int id = 0;  // an adapter's place among those that were loaded with the model
  float scale = 1;

  bool operator==(const AdapterScale&) const = default;
};

// In ascending order of their ids, each at most once, and none with the scale 0: equal sets have equal values. Empty =
// the model as it is.
using AdapterSet = std::vector<AdapterScale>;

// The set in which adapter i has the scale scales[i].
AdapterSet AdaptersOf(const std::vector<float>& scales);

// Different for different sets; "" for the empty one.
std::string Describe(const AdapterSet& adapters);

}  // namespace outrider
