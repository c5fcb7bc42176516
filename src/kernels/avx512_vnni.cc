// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run
// unless KernelSetsOfThisCpu has found that the CPU supports it.
#include "kernels/simd_avx512.h"
// The templates use the vector operations of the header above, so they must be included after it.
#include "kernels/kernels_of.h"

namespace outrider::kernels {
extern constinit const KernelSet kAvx512VnniKernels = KernelsOf<Avx512Vnni>("avx512-vnni");

}  // namespace outrider::kernels
