// Tests whether a matrix product on this CPU gives a row the same bits, independently of the number of rows beside it.
//
// ggml chooses kernels by the number of rows and by the CPU: one row may be computed by other code than four rows, and
// the two may add in another order. Then a text would depend on drafts and on other requests that are served at the
// same time. So before a model is loaded, the product is computed with a small matrix of each weight type in the file,
// which takes milliseconds. Nothing is assumed about unknown CPUs.
#pragma once

#include <ggml-backend.h>
#include <ggml.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace outrider {

enum class WeightLayout {
  kPlain,     // as in the file
  kRepacked,  // reordered for the CPU's vector instructions when the model is loaded, where ggml knows how
};

// Computes the outputs of `rows` rows of `input`; all outputs of the first row come first.
using RowProduct = std::function<std::vector<float>(std::span<const float> input, int rows)>;

inline constexpr int kMaxProbeRows = 128;

// Compares each row computed alone with the same row computed beside others, bit by bit, for 2 to 16 rows and some
// larger numbers up to kMaxProbeRows. `inputs`: values of one row.
bool RowsAreIndependent(const RowProduct& product, int64_t inputs);

// The same for ggml's product with a matrix of this type, on the CPU backend.
bool RowsAreIndependent(ggml_type type, WeightLayout layout);

// The same for the product on a device other than the CPU.
bool RowsAreIndependentOn(ggml_backend_dev_t device, ggml_type type);

struct WeightType {
  ggml_type type;
  bool in_tiles;  // all weights of this type have shapes for which src/kernels has a tiled layout
  bool operator==(const WeightType&) const = default;
};

// Types of those weights of a GGUF file that enter matrix products; all parts of a split model are read. Empty if the
// file cannot be read.
std::vector<WeightType> WeightTypes(const std::string& path);

// Shapes of all weights of a GGUF file by their names; all parts of a split model are read.
std::map<std::string, std::array<int64_t, 4>> WeightShapes(const std::string& path);

std::set<std::string> WeightsOfType(const std::string& path, ggml_type type);  // names, likewise

uint64_t FileBytes(const std::string& path);  // of all parts of a model; a part that cannot be read counts 0

}  // namespace outrider
