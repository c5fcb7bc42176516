// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run before
// KernelSetsOfThisCpu has looked at the CPU.
#include "kernels/simd_neon.h"
// The templates speak the vocabulary of the header above.
#include "kernels/kernels_of.h"

namespace outrider::kernels {
extern constinit const KernelSet kNeonDotprodKernels = KernelsOf<NeonDotprod>("neon-dotprod");

}  // namespace outrider::kernels
