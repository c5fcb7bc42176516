// Kernels for NVIDIA GPUs whose results for a row do not depend on the rows beside it, plugged into ggml's CUDA backend
// without a patch: the linker leads calls of ggml-cuda's products and attention here first (cuda.cmake).
//
// Only in builds with CUDA; elsewhere Installed() is false and the rest does nothing. Any thread may call these functions,
// but Use() only while no model computes.
#pragma once

#include <ggml.h>

namespace outrider::kernels::cuda {

// Whether this program was built with these kernels.
bool Installed();

// Whether they are used, for all models of this process. At the start they are.
void Use(bool ours);
bool InUse();

// Whether they multiply matrices of this type.
bool HasMatmulFor(ggml_type type);

}  // namespace outrider::kernels::cuda
