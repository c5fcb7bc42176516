#include "kernels/kernel_set.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace outrider::kernels {

const KernelSet* const* KernelSetsOfThisCpu() {
#if defined(__x86_64__)
  static const KernelSet* const* const sets = [] {
    static const KernelSet* found[5] = {};
    int n = 0;
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni")) {
      found[n++] = &kAvx512VnniKernels;
      found[n++] = &kAvx512Vnni256Kernels;
    }
    if (avx2 && __builtin_cpu_supports("avxvnni")) found[n++] = &kAvxVnniKernels;
    if (avx2) found[n++] = &kAvx2Kernels;
    return found;
  }();
#elif defined(__aarch64__) && defined(__linux__)
  static const KernelSet* const sets[] = {(getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? &kNeonDotprodKernels : nullptr,
                                          nullptr};
#else
  static const KernelSet* const sets[] = {nullptr};
#endif
  return sets;
}

}  // namespace outrider::kernels
