// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#define OUTRIDER_VNNI_256 AvxVnni
#include "kernels/simd_vnni_256.h"
// The templates speak the vocabulary of the header above.
#include "kernels/kernels_of.h"

namespace outrider::kernels {
extern constinit const KernelSet kAvxVnniKernels = KernelsOf<AvxVnni>("avx-vnni");

}  // namespace outrider::kernels
