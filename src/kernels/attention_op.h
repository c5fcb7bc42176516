// Computes ggml's FLASH_ATTN_EXT with our kernels: cuts it into tiles and distributes these among threads.
#pragma once

#include <ggml.h>

#include <cstddef>

#include "kernels/kernel_set.h"

struct ggml_compute_params;

namespace outrider::kernels {

inline constexpr int kHeadValuesStep = 32;  // heads with a multiple of this many values work for every type of memory

// Whether the kernels can do this operation: types, head sizes, layout of its tensors.
bool CanAttend(const ggml_tensor* op);

size_t AttentionWorkBytes(const KernelSet& kernels, const ggml_tensor* op, int threads);

// Computes one thread's share; all threads of the pool must call it.
void ComputeAttention(const KernelSet& kernels, const ggml_compute_params* params, ggml_tensor* op);

}  // namespace outrider::kernels
