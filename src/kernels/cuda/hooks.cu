// Our kernels in front of ggml-cuda's: the linker's --wrap leads the calls of three of its functions here (cuda.cmake).
// What our kernels do not cover is passed on.
#include <atomic>
#include <string>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/instructions.cuh"
#include "kernels/cuda/matmul.h"
#include "kernels/device_kernels.h"

#define MUL_MAT_VEC_Q(prefix) \
  prefix##_Z23ggml_cuda_mul_mat_vec_qR25ggml_backend_cuda_contextPK11ggml_tensorS3_S3_PS1_PK29ggml_cuda_mm_fusion_args_host
#define MUL_MAT_Q(prefix) prefix##_Z19ggml_cuda_mul_mat_qR25ggml_backend_cuda_contextPK11ggml_tensorS3_S3_PS1_
#define FLASH_ATTN_EXT(prefix) prefix##_Z24ggml_cuda_flash_attn_extR25ggml_backend_cuda_contextP11ggml_tensor

namespace outrider::kernels::device {
namespace {

std::atomic<bool> in_use{false};

}  // namespace

bool Installed() {
  return true;
}

bool Serve(ggml_backend_dev_t device) {
  for (int i = 0; i < ggml_cuda_info().device_count; ++i) {
    if (GGML_CUDA_NAME + std::to_string(i) == ggml_backend_dev_name(device)) return cuda::RunsOn(i);
  }
  return false;
}

void Use(bool ours) {
  in_use = ours;
}

bool InUse() {
  return in_use;
}

bool HasProduct(ggml_type type) {
  return cuda::HasMatmul(type);
}

bool HasAttention(int64_t head_values) {
  return cuda::HasAttention(head_values);
}

}  // namespace outrider::kernels::device

using namespace outrider::kernels::cuda;
using outrider::kernels::device::InUse;

extern "C" {

void MUL_MAT_VEC_Q(__real_)(ggml_backend_cuda_context&, const ggml_tensor*, const ggml_tensor*, const ggml_tensor*,
                            ggml_tensor*, const ggml_cuda_mm_fusion_args_host*);
void MUL_MAT_VEC_Q(__wrap_)(ggml_backend_cuda_context& context, const ggml_tensor* weights, const ggml_tensor* input,
                            const ggml_tensor* ids, ggml_tensor* output, const ggml_cuda_mm_fusion_args_host* fusion) {
  if (InUse() && CanMultiply(weights, input, ids, output, fusion))
    return Multiply(context, weights, input, output, fusion);
  MUL_MAT_VEC_Q(__real_)(context, weights, input, ids, output, fusion);
}

void MUL_MAT_Q(__real_)(ggml_backend_cuda_context&, const ggml_tensor*, const ggml_tensor*, const ggml_tensor*,
                        ggml_tensor*);
void MUL_MAT_Q(__wrap_)(ggml_backend_cuda_context& context, const ggml_tensor* weights, const ggml_tensor* input,
                        const ggml_tensor* ids, ggml_tensor* output) {
  if (InUse() && CanMultiply(weights, input, ids, output, nullptr))
    return Multiply(context, weights, input, output, nullptr);
  MUL_MAT_Q(__real_)(context, weights, input, ids, output);
}

void FLASH_ATTN_EXT(__real_)(ggml_backend_cuda_context&, ggml_tensor*);
void FLASH_ATTN_EXT(__wrap_)(ggml_backend_cuda_context& context, ggml_tensor* output) {
  if (InUse() && CanAttend(output)) return Attend(context, output);
  FLASH_ATTN_EXT(__real_)(context, output);
}

}  // extern "C"
