// Does a matrix product on this CPU give a row the same bits whatever the number of rows beside it?
//
// ggml picks kernels by the number of rows and by the CPU: one row may take another path than four, and the two may sum
// in another order. That would make a text depend on who else is being served, and on drafts. So before a model is
// loaded, the product is tried out on a small matrix of each weight type the file has, in milliseconds; nothing is
// assumed of CPUs we have not seen.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <string>
#include <vector>

namespace outrider {

enum class WeightLayout {
  kPlain,     // as in the file
  kRepacked,  // reordered for the CPU's vector instructions when the model is loaded, where ggml knows how
};

// Tries 1 to 16 and some larger numbers of rows, on the CPU backend.
bool RowsAreIndependent(ggml_type type, WeightLayout layout);

struct WeightType {
  ggml_type type;
  bool in_tiles;  // all weights of this type have shapes for which src/kernels has a layout
  bool operator==(const WeightType&) const = default;
};

// Types of the weights of a GGUF file, all parts of a split one included, that enter matrix products; empty if it
// cannot be read.
std::vector<WeightType> WeightTypes(const std::string& path);

uint64_t FileBytes(const std::string& path);  // of all parts of a model; what cannot be read counts nothing

}  // namespace outrider
