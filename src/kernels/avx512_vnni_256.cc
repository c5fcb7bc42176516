// The kernels compiled for this instruction set (instruction_sets.cmake has the flags). Nothing here may run
// unless KernelSetsOfThisCpu has found that the CPU supports it.
#define OUTRIDER_VNNI_256 Avx512Vnni256
#include "kernels/simd_vnni_256.h"
// The templates use the vector operations of the header above, so they must be included after it.
#include "kernels/kernels_of.h"

namespace outrider::kernels {
extern constinit const KernelSet kAvx512Vnni256Kernels = KernelsOf<Avx512Vnni256>("avx512-vnni-256");

}  // namespace outrider::kernels
