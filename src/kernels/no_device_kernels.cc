// For builds without CUDA.
#include "kernels/device_kernels.h"

namespace outrider::kernels::device {

bool Installed() {
  return false;
}

bool Serve(ggml_backend_dev_t /*device*/) {
  return false;
}

void Use(bool /*ours*/) {}

bool InUse() {
  return false;
}

bool HasProduct(ggml_type /*type*/) {
  return false;
}

bool HasAttention(int64_t /*head_values*/) {
  return false;
}

}  // namespace outrider::kernels::device
