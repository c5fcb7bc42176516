// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#define OUTRIDER_VNNI_256 Avx512Vnni256
#include "kernels/simd_vnni_256.h"
// The templates speak the vocabulary of the header above.
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/peak.h"

namespace outrider::kernels {
extern const KernelSet kAvx512Vnni256Kernels = {"avx512-vnni-256",
                                                kMatmulKernels<Avx512Vnni256>,
                                                sizeof kMatmulKernels<Avx512Vnni256> / sizeof(MatmulKernels),
                                                Attention<Avx512Vnni256>::ScratchBytes,
                                                Attention<Avx512Vnni256>::Attend,
                                                Peak<Avx512Vnni256>::SpinDots};

}  // namespace outrider::kernels
