// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#include "kernels/simd_avx2.h"
// The templates speak the vocabulary of the header above.
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/peak.h"

namespace outrider::kernels {
extern const KernelSet kAvx2Kernels = {"avx2",
                                       kMatmulKernels<Avx2>,
                                       sizeof kMatmulKernels<Avx2> / sizeof(MatmulKernels),
                                       Attention<Avx2>::ScratchBytes,
                                       Attention<Avx2>::Attend,
                                       Peak<Avx2>::SpinDots};

}  // namespace outrider::kernels
