// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#define OUTRIDER_VNNI_256 AvxVnni
#include "kernels/simd_vnni_256.h"
// The templates speak the vocabulary of the header above.
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/peak.h"

namespace outrider::kernels {
extern const KernelSet kAvxVnniKernels = {"avx-vnni",
                                          kMatmulKernels<AvxVnni>,
                                          sizeof kMatmulKernels<AvxVnni> / sizeof(MatmulKernels),
                                          Attention<AvxVnni>::ScratchBytes,
                                          Attention<AvxVnni>::Attend,
                                          Peak<AvxVnni>::SpinDots};

}  // namespace outrider::kernels
