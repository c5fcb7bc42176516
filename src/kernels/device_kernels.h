// Kernels for NVIDIA GPUs whose result for a row does not depend on the rows beside it, plugged into ggml's CUDA
// backend without a patch: the linker leads ggml-cuda's calls for products and attention to ours first
// (cuda/cuda.cmake). What ours do not cover is passed on.
//
// In builds without CUDA there are none: Installed() is false, and nothing is covered. All models of a process share
// the choice that Use() makes; it must not be called while a model computes. Otherwise any thread may call these
// functions.
#pragma once

#include <ggml-backend.h>
#include <ggml.h>

#include <cstdint>

namespace outrider::kernels::device {

// Whether this program has such kernels, and whether they serve this device.
bool Installed();
bool Serve(ggml_backend_dev_t device);

// Whether they are used. At the start they are not.
void Use(bool ours);
bool InUse();

// Whether they multiply matrices of this type.
bool HasProduct(ggml_type type);

// Whether they compute attention with heads of so many values, if K and V are f16.
bool HasAttention(int64_t head_values);

}  // namespace outrider::kernels::device
