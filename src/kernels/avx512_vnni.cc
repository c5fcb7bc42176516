// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#include "kernels/simd_avx512.h"
// The templates speak the vocabulary of the header above.
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/peak.h"

namespace outrider::kernels {
extern const KernelSet kAvx512VnniKernels = {"avx512-vnni",
                                             kMatmulKernels<Avx512Vnni>,
                                             sizeof kMatmulKernels<Avx512Vnni> / sizeof(MatmulKernels),
                                             Attention<Avx512Vnni>::ScratchBytes,
                                             Attention<Avx512Vnni>::Attend,
                                             Peak<Avx512Vnni>::SpinDots};

}  // namespace outrider::kernels
