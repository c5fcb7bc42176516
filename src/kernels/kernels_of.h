// All kernels of one instruction set, made from the templates. To be included by the translation unit that is compiled
// for it, after the header with its vector operations.
#pragma once

#include <iterator>

#include "kernels/attention.h"
#include "kernels/kernel_set.h"
#include "kernels/matmul.h"
#include "kernels/peak.h"

namespace outrider::kernels {

template <typename S>
consteval KernelSet KernelsOf(const char* name) {
  static_assert(HasKernelsForAllLayouts<S>(),
                "a type of kTypesWithLayout (layout.h) is not in kMatmulKernels (matmul.h)");
  return {name,
          kMatmulKernels<S>,
          static_cast<int>(std::size(kMatmulKernels<S>)),
          Attention<S>::ScratchBytes,
          Attention<S>::Attend,
          Peak<S>::SpinDots};
}

}  // namespace outrider::kernels
