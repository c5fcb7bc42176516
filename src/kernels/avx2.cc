// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#include "kernels/simd_avx2.h"
// The templates speak the vocabulary of the header above.
#include "kernels/kernels_of.h"

namespace outrider::kernels {
extern constinit const KernelSet kAvx2Kernels = KernelsOf<Avx2>("avx2");

}  // namespace outrider::kernels
