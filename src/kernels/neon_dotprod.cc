// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#include "kernels/simd_neon.h"
// The templates speak the vocabulary of the header above.
#include "kernels/attention.h"
#include "kernels/matmul.h"

namespace outrider::kernels {
namespace {

constexpr MatmulKernels kMatmul[] = {
    KernelsOf<NeonDotprod, Format32<NeonDotprod, Q4_0Weights>>(),
    KernelsOf<NeonDotprod, Format32<NeonDotprod, Q4_1Weights>>(),
    KernelsOf<NeonDotprod, Format32<NeonDotprod, Q8_0Weights>>(),
    KernelsOf<NeonDotprod, Format32<NeonDotprod, Iq4NlWeights>>(),
    KernelsOf<NeonDotprod, FormatQ45K<NeonDotprod, false>>(),
    KernelsOf<NeonDotprod, FormatQ45K<NeonDotprod, true>>(),
    KernelsOf<NeonDotprod, FormatQ6K<NeonDotprod>>(),
};

}  // namespace

extern const KernelSet kNeonDotprodKernels = {"neon-dotprod", kMatmul, sizeof kMatmul / sizeof kMatmul[0],
                                              Attention<NeonDotprod>::ScratchBytes, Attention<NeonDotprod>::Attend};

}  // namespace outrider::kernels
