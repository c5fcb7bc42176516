// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#include "kernels/simd_avx2.h"
// The templates speak the vocabulary of the header above.
#include "kernels/attention.h"
#include "kernels/matmul.h"

namespace outrider::kernels {
namespace {

constexpr MatmulKernels kMatmul[] = {
    KernelsOf<Avx2, Format32<Avx2, Q4_0Weights>>(),
    KernelsOf<Avx2, Format32<Avx2, Q4_1Weights>>(),
    KernelsOf<Avx2, Format32<Avx2, Q8_0Weights>>(),
    KernelsOf<Avx2, Format32<Avx2, Iq4NlWeights>>(),
    KernelsOf<Avx2, FormatQ45K<Avx2, false>>(),
    KernelsOf<Avx2, FormatQ45K<Avx2, true>>(),
    KernelsOf<Avx2, FormatQ6K<Avx2>>(),
};

}  // namespace

extern const KernelSet kAvx2Kernels = {"avx2", kMatmul, sizeof kMatmul / sizeof kMatmul[0],
                                       Attention<Avx2>::ScratchBytes, Attention<Avx2>::Attend};

}  // namespace outrider::kernels
