// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#include "kernels/simd_neon.h"
// The templates speak the vocabulary of the header above.
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/peak.h"

namespace outrider::kernels {
extern const KernelSet kNeonDotprodKernels = {"neon-dotprod",
                                              kMatmulKernels<NeonDotprod>,
                                              sizeof kMatmulKernels<NeonDotprod> / sizeof(MatmulKernels),
                                              Attention<NeonDotprod>::ScratchBytes,
                                              Attention<NeonDotprod>::Attend,
                                              Peak<NeonDotprod>::SpinDots};

}  // namespace outrider::kernels
