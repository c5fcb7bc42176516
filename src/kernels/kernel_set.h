// The interface of the kernels of one instruction set: plain functions, so that the translation units that are compiled
// for it share no inline code with the rest of the program.
//
// A product is computed tile by tile (layout.h) and panel by panel. A panel is a few columns of activations, quantised
// beside each other. The result of a column does not depend on the number of columns: the same operations are done in
// the same order, whatever panel the column is in.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>

namespace outrider::kernels {

struct AttentionShape;
struct AttentionTile;

inline constexpr int kMaxPanelColumns = 16;

// For one type of weights.
struct MatmulKernels {
  ggml_type type;
  int block_values;           // of the weights, and of the activations' blocks: 32 or 256
  int panel_columns;          // max columns of a panel
  size_t column_block_bytes;  // of a panel, for each column and block

  // Quantises blocks [first, last) of the column `x` into a panel of `columns`.
  void (*quantize)(const float* x, int64_t first, int64_t last, uint8_t* panel, int columns, int column);

  // out[c][0…15] = the tile's rows times column c. By number of columns; null above panel_columns.
  using Multiply = void (*)(const uint8_t* tile, int64_t blocks, const uint8_t* panel, float* const* out);
  Multiply multiply[kMaxPanelColumns + 1];
};

struct KernelSet {
  const char* name;  // "avx512-vnni"
  const MatmulKernels* matmul;
  int n_matmul;
  size_t (*attention_scratch_bytes)(const AttentionShape& shape);  // of one thread
  void (*attend)(const AttentionShape& shape, const AttentionTile& tile, uint8_t* scratch);
  int64_t (*spin_dots)(int64_t rounds, const uint8_t* values, int32_t* sink);  // for benchmarks (peak.h)

  const MatmulKernels* ForType(ggml_type type) const {
    for (int i = 0; i < n_matmul; ++i) {
      if (matmul[i].type == type) return &matmul[i];
    }
    return nullptr;
  }
};

// All kernel sets of this build that this CPU can run, best first; the list ends with null.
const KernelSet* const* KernelSetsOfThisCpu();

extern const KernelSet kAvx512VnniKernels;
extern const KernelSet kAvx512Vnni256Kernels;  // for tests of kAvxVnniKernels on processors without AVX-VNNI
extern const KernelSet kAvxVnniKernels;
extern const KernelSet kAvx2Kernels;
extern const KernelSet kNeonDotprodKernels;

}  // namespace outrider::kernels
