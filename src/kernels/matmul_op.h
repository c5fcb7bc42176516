// Computes ggml's MUL_MAT and MUL_MAT_ID with our kernels: quantises activations into panels and distributes tiles
// among threads.
#pragma once

#include <ggml.h>

#include <cstddef>

#include "kernels/kernel_set.h"

struct ggml_compute_params;

namespace outrider::kernels {

// Whether the kernels can do this product of weights in our layout.
bool CanMultiply(const ggml_tensor* op);

size_t MatmulWorkBytes(const KernelSet& kernels, const ggml_tensor* op);

// Computes one thread's share; all threads of the pool must call it.
void ComputeMatmul(const KernelSet& kernels, const ggml_compute_params* params, ggml_tensor* op);

}  // namespace outrider::kernels
