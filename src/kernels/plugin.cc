#include "kernels/plugin.h"

#include <ggml-backend-impl.h>
#include <ggml-cpu.h>
#include <traits.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <span>

#include "kernels/attention_op.h"
#include "kernels/kernel_set.h"
#include "kernels/layout.h"
#include "kernels/matmul_op.h"

namespace outrider::kernels {
namespace {

// The weight types that our buffer type takes for the model which this thread is loading, and those that it has taken
// into tiles; one bit for each type.
static_assert(GGML_TYPE_COUNT <= 64);
struct WantedTypes {
  uint64_t in_tiles = 0, as_they_are = 0, taken = 0;
};
thread_local WantedTypes wanted;

uint64_t BitOf(ggml_type type) {
  return uint64_t{1} << type;
}

std::atomic<bool> attention_is_ours = false;
std::atomic<const KernelSet*> current = nullptr;

const KernelSet* Current() {
  const KernelSet* chosen = current.load(std::memory_order_relaxed);
  return chosen != nullptr ? chosen : KernelSetsOfThisCpu()[0];
}

class MatmulTraits : public ggml::cpu::tensor_traits {
  bool work_size(int, const ggml_tensor* op, size_t& size) override {
    size = MatmulWorkBytes(*Current(), op);
    return true;
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* op) override {
    ComputeMatmul(*Current(), params, op);
    return true;
  }
};

class AttentionTraits : public ggml::cpu::tensor_traits {
  bool work_size(int threads, const ggml_tensor* op, size_t& size) override {
    size = AttentionWorkBytes(*Current(), op, threads);
    return true;
  }
  bool compute_forward(ggml_compute_params* params, ggml_tensor* op) override {
    ComputeAttention(*Current(), params, op);
    return true;
  }
};

bool IsProduct(const ggml_tensor* op) {
  return op->op == GGML_OP_MUL_MAT || op->op == GGML_OP_MUL_MAT_ID;
}

// A tensor's `extra` points to one of these: it says in which layout our buffer holds the weights.
char tiles_mark, as_they_are_mark;

bool IsOurs(const ggml_tensor* weights) {
  return weights->buffer != nullptr && weights->buffer->buft == BufferType();
}
bool IsInTiles(const ggml_tensor* weights) {
  return weights->extra == &tiles_mark;
}

class Plugin : public ggml::cpu::extra_buffer_type {
  // Called by the loader for each weight, with an empty buffer, and by ggml's scheduler for each operation.
  bool supports_op(ggml_backend_dev_t, const ggml_tensor* op) override {
    if (!IsProduct(op) || !IsOurs(op->src[0])) return false;
    const ggml_tensor* weights = op->src[0];
    if (op->src[1]->buffer != nullptr && !ggml_backend_buft_is_host(op->src[1]->buffer->buft)) return false;
    const bool loading = weights->buffer->size == 0;
    if (!loading) return !IsInTiles(weights) || CanMultiply(op);
    const uint64_t type = BitOf(weights->type);
    if ((wanted.in_tiles & type) != 0 && HasLayout(weights)) return CanMultiply(op);
    return (wanted.as_they_are & type) != 0;
  }

  ggml::cpu::tensor_traits* get_tensor_traits(const ggml_tensor* op) override {
    if (op->op == GGML_OP_FLASH_ATTN_EXT) {
      return attention_is_ours.load(std::memory_order_relaxed) && CanAttend(op) ? &attention_ : nullptr;
    }
    if (!IsProduct(op) || !IsOurs(op->src[0]) || !IsInTiles(op->src[0])) return nullptr;
    return &matmul_;
  }

  MatmulTraits matmul_;
  AttentionTraits attention_;
};

// ---- the buffer type, in ggml's terms ----

const char* Name(ggml_backend_buffer_type_t) {
  return "CPU_OUTRIDER";
}

size_t Alignment(ggml_backend_buffer_type_t) {
  return 64;
}

size_t AllocSize(ggml_backend_buffer_type_t, const ggml_tensor* tensor) {
  if (!HasLayout(tensor)) return ggml_nbytes(tensor);
  return static_cast<size_t>(tensor->ne[2]) * MatrixBytes(tensor->type, tensor->ne[0], tensor->ne[1]);
}

ggml_status InitTensor(ggml_backend_buffer_t, ggml_tensor* tensor) {
  if (const ggml_tensor* whole = tensor->view_src; whole != nullptr) {
    tensor->extra = whole->extra;
    // A view of a part of a matrix in tiles is not possible, because tiles interleave rows.
    GGML_ASSERT(!IsInTiles(whole) || (tensor->view_offs == 0 && ggml_are_same_shape(tensor, whole)));
    return GGML_STATUS_SUCCESS;
  }
  const bool only_as_it_is = (wanted.as_they_are & ~wanted.in_tiles & BitOf(tensor->type)) != 0;
  tensor->extra = HasLayout(tensor) && !only_as_it_is ? &tiles_mark : &as_they_are_mark;
  if (IsInTiles(tensor)) wanted.taken |= BitOf(tensor->type);
  return GGML_STATUS_SUCCESS;
}

void SetTensor(ggml_backend_buffer_t, ggml_tensor* tensor, const void* data, size_t offset, size_t size) {
  auto* to = static_cast<uint8_t*>(tensor->data);
  if (!IsInTiles(tensor)) {
    std::memcpy(to + offset, data, size);
    return;
  }
  GGML_ASSERT(offset == 0 && size == ggml_nbytes(tensor));
  const size_t matrix_bytes = MatrixBytes(tensor->type, tensor->ne[0], tensor->ne[1]);
  for (int64_t matrix = 0; matrix < tensor->ne[2]; ++matrix, to += matrix_bytes) {
    const auto* from = static_cast<const uint8_t*>(data) + matrix * static_cast<int64_t>(tensor->nb[2]);
    Pack(tensor->type, from, tensor->ne[1], tensor->ne[0], to);
  }
}

void GetTensor(ggml_backend_buffer_t, const ggml_tensor* tensor, void* data, size_t offset, size_t size) {
  GGML_ASSERT(!IsInTiles(tensor));  // weights are never read back
  std::memcpy(data, static_cast<const uint8_t*>(tensor->data) + offset, size);
}

ggml_backend_buffer_t Allocate(ggml_backend_buffer_type_t type, size_t size) {
  ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
  if (buffer == nullptr) return nullptr;
  buffer->buft = type;
  buffer->iface.init_tensor = InitTensor;
  buffer->iface.set_tensor = SetTensor;
  buffer->iface.get_tensor = GetTensor;
  buffer->iface.cpy_tensor = nullptr;
  return buffer;
}

}  // namespace

std::string_view InstructionSet() {
  const KernelSet* best = Current();
  return best != nullptr ? best->name : "";
}

bool UseInstructionSet(std::string_view name) {
  if (name.empty()) {
    current = nullptr;
    return true;
  }
  for (const KernelSet* const* set = KernelSetsOfThisCpu(); *set != nullptr; ++set) {
    if (name != (*set)->name) continue;
    current = *set;
    return true;
  }
  return false;
}

ggml_backend_buffer_type_t BufferType() {
  static Plugin plugin;
  static ggml_backend_buffer_type type = {{Name, Allocate, Alignment, nullptr, AllocSize, nullptr},
                                          ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0),
                                          &plugin};
  return &type;
}

ggml_backend_buffer_type_t GgmlBufferType(ggml_type type, int64_t row_values, int64_t rows) {
  ggml_context* context = ggml_init({4 * ggml_tensor_overhead(), nullptr, true});
  ggml_tensor* weights = ggml_new_tensor_2d(context, type, row_values, rows);
  ggml_tensor* x = ggml_new_tensor_2d(context, GGML_TYPE_F32, row_values, 1);
  ggml_tensor* product = ggml_mul_mat(context, weights, x);
  ggml_backend_dev_t cpu = ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0);
  ggml_backend_buffer_type_t found = ggml_backend_cpu_buffer_type();
  for (ggml_backend_buffer_type_t candidate : ggml_backend_cpu_get_extra_buffer_types()) {
    if (candidate == BufferType()) continue;
    ggml_backend_buffer_t empty = ggml_backend_buft_alloc_buffer(candidate, 0);
    weights->buffer = empty;
    const bool takes = ggml_backend_dev_supports_op(cpu, product);
    ggml_backend_buffer_free(empty);
    if (!takes) continue;
    found = candidate;
    break;
  }
  ggml_free(context);
  return found;
}

void Install() {
  if (KernelSetsOfThisCpu()[0] == nullptr) return;
  static std::once_flag once;
  std::call_once(once, [] {
    auto& types = ggml_backend_cpu_get_extra_buffer_types();
    types.insert(types.begin(), BufferType());
  });
}

TakeWeights::TakeWeights(std::span<const ggml_type> in_tiles, std::span<const ggml_type> as_they_are)
    : in_tiles_(in_tiles.begin(), in_tiles.end()),
      in_tiles_before_(wanted.in_tiles),
      as_they_are_before_(wanted.as_they_are),
      taken_before_(wanted.taken) {
  wanted = {};
  if (KernelSetsOfThisCpu()[0] == nullptr) return;
  for (ggml_type type : in_tiles) wanted.in_tiles |= BitOf(type);
  for (ggml_type type : as_they_are) wanted.as_they_are |= BitOf(type);
}
TakeWeights::~TakeWeights() {
  wanted = {in_tiles_before_, as_they_are_before_, taken_before_};
}
std::vector<ggml_type> TakeWeights::Taken() const {
  std::vector<ggml_type> types;
  for (ggml_type type : in_tiles_) {
    if ((wanted.taken & BitOf(type)) != 0) types.push_back(type);
  }
  return types;
}

namespace {
std::mutex holds_mutex;
int holds = 0;
}  // namespace

std::unique_ptr<AttentionHold> AttentionHold::Take(bool ours) {
  const std::lock_guard lock(holds_mutex);
  const bool possible = ours && KernelSetsOfThisCpu()[0] != nullptr;
  if (holds > 0 && attention_is_ours != possible) return nullptr;
  attention_is_ours = possible;
  ++holds;
  return std::unique_ptr<AttentionHold>(new AttentionHold());
}
AttentionHold::~AttentionHold() {
  const std::lock_guard lock(holds_mutex);
  if (--holds == 0) attention_is_ours = false;
}

bool AttentionIsHeld() {
  const std::lock_guard lock(holds_mutex);
  return holds > 0;
}
bool AttentionIsOurs() {
  return attention_is_ours;
}

}  // namespace outrider::kernels
