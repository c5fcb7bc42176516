// Attention of a few or many rows over the KV memory of one or several sequences.
//
// The cells of a sequence are cut into chunks of fixed places. For each chunk a row gets a result of its own; then the
// results are merged in the order of the chunks. A chunk in which a row sees no cell leaves the row's result as it is,
// to the bit. So the result of a row depends on the cells that it sees, and on nothing else: not on the number of rows,
// of sequences, or of cells that others use.
#pragma once

#include <common.cuh>

namespace outrider::kernels::cuda {

// Whether there is a kernel for heads of so many values.
bool HasAttention(int64_t head_values);

// Whether Attend() can compute this FLASH_ATTN_EXT operation.
bool CanAttend(const ggml_tensor* output);

void Attend(ggml_backend_cuda_context& context, ggml_tensor* output);

}  // namespace outrider::kernels::cuda
