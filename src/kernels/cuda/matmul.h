// Products of quantised matrices with a few or many columns, on tensor cores.
//
// A column of the result depends on that column of the input alone: not on the number of columns beside it, nor on its
// place among them. The tensor cores compute with integers, which is exact; sums of floats are made in an order that
// depends on the length of a row only. So one product serves steps of every width.
#pragma once

#include <common.cuh>

namespace outrider::kernels::cuda {

bool HasMatmul(ggml_type type);

// Whether Multiply() can compute this product; `fusion` may be null.
bool CanMultiply(const ggml_tensor* weights, const ggml_tensor* input, const ggml_tensor* ids,
                 const ggml_tensor* output, const ggml_cuda_mm_fusion_args_host* fusion);

// output = weights x input, plus what `fusion` says.
void Multiply(ggml_backend_cuda_context& context, const ggml_tensor* weights, const ggml_tensor* input,
              ggml_tensor* output, const ggml_cuda_mm_fusion_args_host* fusion);

}  // namespace outrider::kernels::cuda
