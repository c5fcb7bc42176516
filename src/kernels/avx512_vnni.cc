// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#include "kernels/simd_avx512.h"
// The templates speak the vocabulary of the header above.
#include "kernels/attention.h"
#include "kernels/matmul.h"

namespace outrider::kernels {
namespace {

constexpr MatmulKernels kMatmul[] = {
    KernelsOf<Avx512Vnni, Format32<Avx512Vnni, Q4_0Weights>>(),
    KernelsOf<Avx512Vnni, Format32<Avx512Vnni, Q4_1Weights>>(),
    KernelsOf<Avx512Vnni, Format32<Avx512Vnni, Q8_0Weights>>(),
    KernelsOf<Avx512Vnni, Format32<Avx512Vnni, Iq4NlWeights>>(),
    KernelsOf<Avx512Vnni, FormatQ45K<Avx512Vnni, false>>(),
    KernelsOf<Avx512Vnni, FormatQ45K<Avx512Vnni, true>>(),
    KernelsOf<Avx512Vnni, FormatQ6K<Avx512Vnni>>(),
};

}  // namespace

extern const KernelSet kAvx512VnniKernels = {"avx512-vnni", kMatmul, sizeof kMatmul / sizeof kMatmul[0],
                                             Attention<Avx512Vnni>::ScratchBytes, Attention<Avx512Vnni>::Attend};

}  // namespace outrider::kernels
