// All kernels of one instruction set, from the templates. For a translation unit compiled for it, after the header with
// its vocabulary.
#pragma once

#include <iterator>

#include "kernels/attention.h"
#include "kernels/kernel_set.h"
#include "kernels/matmul.h"
#include "kernels/peak.h"

namespace outrider::kernels {

template <typename S>
consteval KernelSet KernelsOf(const char* name) {
  return {name,
          kMatmulKernels<S>,
          static_cast<int>(std::size(kMatmulKernels<S>)),
          Attention<S>::ScratchBytes,
          Attention<S>::Attend,
          Peak<S>::SpinDots};
}

}  // namespace outrider::kernels
