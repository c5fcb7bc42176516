// The instructions of NVIDIA's tensor cores that our kernels use: those of compute capability 8.0 (Ampere) and newer.
// For older devices nothing is compiled, and nothing is called there.
#pragma once

#include <common.cuh>
#include <cstdint>

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= GGML_CUDA_CC_AMPERE
#define OUTRIDER_HAS_TENSOR_CORES
#endif

namespace outrider::kernels::cuda {

inline bool RunsOn(int device) {
  const int cc = ggml_cuda_info().devices[device].cc;
  return GGML_CUDA_CC_IS_NVIDIA(cc) && ggml_cuda_highest_compiled_arch(cc) >= GGML_CUDA_CC_AMPERE;
}

// sums += a x b, for tiles of 16 rows and 8 columns. Which thread holds what is written in NVIDIA's PTX manual.
static __device__ __forceinline__ void MultiplyBytes32(int (&sums)[4], int a0, int a1, int a2, int a3, int b0, int b1) {
#ifdef OUTRIDER_HAS_TENSOR_CORES
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}

static __device__ __forceinline__ void MultiplyBytes16(int (&sums)[4], int a0, int a1, int b0) {
#ifdef OUTRIDER_HAS_TENSOR_CORES
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a0), "r"(a1), "r"(b0));
#endif
}

static __device__ __forceinline__ void MultiplyHalves16(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                                                        uint32_t b1) {
#ifdef OUTRIDER_HAS_TENSOR_CORES
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

static __device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Four matrices of 8 rows and 8 columns from shared memory; each thread gives the address of a row.
static __device__ __forceinline__ void LoadMatrices(uint32_t (&r)[4], const half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(SharedAddress(row)));
}

static __device__ __forceinline__ void LoadTransposed(uint32_t (&r)[4], const half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(SharedAddress(row)));
}

// Starts copying 16 bytes to shared memory, or 16 zeros.
static __device__ __forceinline__ void StartCopy(half* to, const void* from, bool zeros) {
#ifdef OUTRIDER_HAS_TENSOR_CORES
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)), "l"(from),
               "r"(zeros ? 0 : 16));
#endif
}

// Ends a group of copies.
static __device__ __forceinline__ void EndCopies() {
#ifdef OUTRIDER_HAS_TENSOR_CORES
  asm volatile("cp.async.commit_group;");
#endif
}

// Waits until all but the last `groups` groups of the thread's copies have arrived.
template <int groups>
static __device__ __forceinline__ void AwaitCopies() {
#ifdef OUTRIDER_HAS_TENSOR_CORES
  asm volatile("cp.async.wait_group %0;" ::"n"(groups));
#endif
}

}  // namespace outrider::kernels::cuda
