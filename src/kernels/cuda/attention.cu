#include <cmath>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/instructions.cuh"

namespace outrider::kernels::cuda {
namespace {

constexpr int kChunk = 64;    // cells
constexpr int kTile = 16;     // rows of a tensor core's tile; a row is a token and a head here
constexpr int kMaxWarps = 4;  // of a thread block; each has a tile, and all read the same cells
constexpr float kLog2E = 1.44269504f;

struct Attention {
  const char *q, *k, *v, *mask;
  const float* sinks;  // by head; may be null
  float* output;
  int64_t q_row, q_head, q_sequence;  // in bytes, like the following
  int64_t k_cell, k_head, k_sequence;
  int64_t v_cell, v_head, v_sequence;
  int64_t mask_row, mask_sequence;
  int rows;          // tokens of each sequence
  int heads, group;  // `group` heads share the memory of one
  int sequences;
  int cells;
  int mask_sequences;
  float scale, softcap;
  float max_bias, slope0, slope1;  // ALiBi
  int slope_heads;
  int chunks;
  float* partial;         // by sequence, row, head and chunk: `values` sums
  float2* partial_state;  // likewise: the largest logit and the sum of weights
};

// What is known of a row after some of its chunks.
struct RowState {
  float max = -INFINITY;  // largest logit, in units of log 2
  float sum = 0;          // of 2^(logit - max)
};

// Factors for the sums of the state so far and of a chunk; the state becomes that of both.
__device__ __forceinline__ float2 Merge(RowState* state, float max, float sum) {
  if (max == -INFINITY) return {1.0f, 0.0f};
  const float both = fmaxf(state->max, max);
  const float2 factors{state->max == -INFINITY ? 0.0f : exp2f(__fsub_rn(state->max, both)),
                       exp2f(__fsub_rn(max, both))};
  state->sum = __fmaf_rn(sum, factors.y, __fmul_rn(state->sum, factors.x));
  state->max = both;
  return factors;
}

__device__ __forceinline__ float MergeSum(float before, float added, float2 factors) {
  return __fmaf_rn(added, factors.y, __fmul_rn(before, factors.x));
}

// What the sums must be multiplied by in the end.
__device__ __forceinline__ float Normaliser(RowState state, const float* sinks, int head) {
  float factor = 1.0f;
  if (sinks != nullptr) factor = Merge(&state, __fmul_rn(sinks[head], kLog2E), 1.0f).x;
  return state.sum == 0.0f ? 0.0f : __fdividef(factor, state.sum);
}

__device__ __forceinline__ float Slope(const Attention& a, int head) {
  if (a.max_bias <= 0.0f) return 1.0f;
  return head < a.slope_heads ? powf(a.slope0, static_cast<float>(head + 1))
                              : powf(a.slope1, static_cast<float>(2 * (head - a.slope_heads) + 1));
}

__device__ __forceinline__ uint32_t Pack(float low, float high) {
  const half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

// Copies a chunk of K or V to shared memory, 16 bytes at a time; cells that do not exist become zero.
template <int values>
__device__ __forceinline__ void CopyChunk(half (*to)[values + 8], const char* from, int64_t cell_bytes, int first,
                                          int cells) {
  constexpr int kPieces = values / 8;  // of a cell
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  for (int i = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); i < kChunk * kPieces; i += threads) {
    const int cell = i / kPieces, piece = i % kPieces;
    const bool exists = first + cell < cells;
    const char* source = from + (exists ? first + cell : 0) * cell_bytes + 16 * piece;
    StartCopy(&to[cell][8 * piece], source, !exists);
  }
  EndCopies();
}

// blockIdx: tile of rows, head of the memory and sequence, chunk (only if `split`; else a thread block goes through
// all).
template <int values, bool split>
__global__ void __launch_bounds__(32 * kMaxWarps) AttentionKernel(Attention a) {
  extern __shared__ half shared[];
  auto* k_cells = reinterpret_cast<half(*)[values + 8]>(shared);
  auto* v_cells = k_cells + kChunk;
  const int lane = static_cast<int>(threadIdx.x), group_row = lane / 4, quad = lane % 4;
  const int kv_heads = a.heads / a.group;
  const int kv_head = static_cast<int>(blockIdx.y) % kv_heads, sequence = static_cast<int>(blockIdx.y) / kv_heads;
  const int first = (static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y)) * kTile;  // of the warp's rows
  int token[2], head[2];
  bool exists[2];
  for (int i = 0; i < 2; ++i) {
    const int row = first + group_row + 8 * i;
    exists[i] = row < a.rows * a.group;
    token[i] = exists[i] ? row / a.group : 0;
    head[i] = kv_head * a.group + (exists[i] ? row % a.group : 0);
  }
  ggml_cuda_pdl_sync();

  uint32_t q[values / 16][4];
  const float scale = a.softcap != 0.0f ? __fdividef(a.scale, a.softcap) : a.scale;
  for (int step = 0; step < values / 16; ++step) {
    for (int i = 0; i < 4; ++i) {
      const char* row = a.q + token[i % 2] * a.q_row + head[i % 2] * a.q_head + sequence * a.q_sequence;
      const float2 pair = *reinterpret_cast<const float2*>(row + sizeof(float) * (16 * step + 2 * quad + 8 * (i / 2)));
      q[step][i] = exists[i % 2] ? Pack(__fmul_rn(pair.x, scale), __fmul_rn(pair.y, scale)) : 0u;
    }
  }
  float slope[2];
  for (int i = 0; i < 2; ++i) slope[i] = Slope(a, head[i]);

  const char* k = a.k + kv_head * a.k_head + sequence * a.k_sequence;
  const char* v = a.v + kv_head * a.v_head + sequence * a.v_sequence;
  const char* mask = a.mask + (sequence % a.mask_sequences) * a.mask_sequence;
  RowState state[2];
  float total[values / 8][4] = {};
  const int first_chunk = split ? static_cast<int>(blockIdx.z) : 0;
  const int end_chunk = split ? first_chunk + 1 : a.chunks;
  for (int chunk = first_chunk; chunk < end_chunk; ++chunk) {
    const int first_cell = chunk * kChunk;
    float bias[kChunk / 8][4];
    bool visible = false;
#pragma unroll
    for (int tile = 0; tile < kChunk / 8; ++tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int cell = first_cell + 8 * tile + 2 * quad;
        float2 pair{-INFINITY, -INFINITY};
        if (exists[i] && cell < a.cells) {
          pair = __half22float2(*reinterpret_cast<const half2*>(mask + token[i] * a.mask_row + sizeof(half) * cell));
        }
        visible = visible || pair.x != -INFINITY || pair.y != -INFINITY;
        bias[tile][2 * i] = pair.x;
        bias[tile][2 * i + 1] = pair.y;
      }
    }
    if (!__syncthreads_or(visible)) continue;  // also: nobody reads the cells of the last chunk any more
    CopyChunk<values>(k_cells, k, a.k_cell, first_cell, a.cells);
    CopyChunk<values>(v_cells, v, a.v_cell, first_cell, a.cells);
    AwaitCopies<1>();
    __syncthreads();

    float logits[kChunk / 8][4] = {};
#pragma unroll
    for (int tile = 0; tile < kChunk / 8; ++tile) {
#pragma unroll
      for (int step = 0; step < values / 16; step += 2) {
        if (step + 1 < values / 16) {
          uint32_t b[4];
          LoadMatrices(b, &k_cells[8 * tile + lane % 8][16 * step + 8 * (lane / 8)]);
          MultiplyHalves16(logits[tile], q[step], b[0], b[1]);
          MultiplyHalves16(logits[tile], q[step + 1], b[2], b[3]);
        } else {
          uint32_t b[4];
          LoadMatrices(b, &k_cells[8 * tile + lane % 8][16 * step + 8 * (lane / 8 % 2)]);
          MultiplyHalves16(logits[tile], q[step], b[0], b[1]);
        }
      }
    }
    float max[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int tile = 0; tile < kChunk / 8; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float logit = logits[tile][i];
        if (a.softcap != 0.0f) logit = __fmul_rn(a.softcap, tanhf(logit));
        // A masked cell stays masked whatever its logit is.
        const float added = bias[tile][i];
        logit = added == -INFINITY ? -INFINITY : __fmul_rn(__fmaf_rn(slope[i / 2], added, logit), kLog2E);
        logits[tile][i] = logit;
        max[i / 2] = fmaxf(max[i / 2], logit);
      }
    }
    float sum[2] = {0, 0};
    float base[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      max[i] = fmaxf(max[i], __shfl_xor_sync(~0u, max[i], 1));
      max[i] = fmaxf(max[i], __shfl_xor_sync(~0u, max[i], 2));
      base[i] = max[i] == -INFINITY ? 0.0f : max[i];
    }
#pragma unroll
    for (int tile = 0; tile < kChunk / 8; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        logits[tile][i] = exp2f(__fsub_rn(logits[tile][i], base[i / 2]));
        sum[i / 2] = __fadd_rn(sum[i / 2], logits[tile][i]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sum[i] = __fadd_rn(sum[i], __shfl_xor_sync(~0u, sum[i], 1));
      sum[i] = __fadd_rn(sum[i], __shfl_xor_sync(~0u, sum[i], 2));
    }
    AwaitCopies<0>();
    __syncthreads();

    float2 factors[2];
    for (int i = 0; i < 2; ++i) factors[i] = Merge(&state[i], max[i], sum[i]);
    uint32_t weights[kChunk / 16][4];
#pragma unroll
    for (int step = 0; step < kChunk / 16; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&tile)[4] = logits[2 * step + i / 2];
        weights[step][i] = Pack(tile[2 * (i % 2)], tile[2 * (i % 2) + 1]);
      }
    }
#pragma unroll
    for (int tile = 0; tile < values / 8; tile += 2) {
      float sums[2][4] = {};
#pragma unroll
      for (int step = 0; step < kChunk / 16; ++step) {
        uint32_t b[4];
        LoadTransposed(b, &v_cells[16 * step + lane % 16][8 * tile + 8 * (lane / 16)]);
        MultiplyHalves16(sums[0], weights[step], b[0], b[1]);
        MultiplyHalves16(sums[1], weights[step], b[2], b[3]);
      }
#pragma unroll
      for (int t = 0; t < 2; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          // A chunk by itself keeps its sums as they are, for MergeKernel.
          total[tile + t][i] = split ? sums[t][i] : MergeSum(total[tile + t][i], sums[t][i], factors[i / 2]);
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (!exists[i]) continue;
    const int64_t place = (static_cast<int64_t>(sequence) * a.rows + token[i]) * a.heads + head[i];
    float* to;
    float factor = 1.0f;
    if constexpr (split) {
      const int64_t part = place * a.chunks + first_chunk;
      if (quad == 0) a.partial_state[part] = {state[i].max, state[i].sum};
      if (state[i].max == -INFINITY) continue;
      to = a.partial + part * values;
    } else {
      to = a.output + place * values;
      factor = Normaliser(state[i], a.sinks, head[i]);
    }
#pragma unroll
    for (int tile = 0; tile < values / 8; ++tile) {
      *reinterpret_cast<float2*>(to + 8 * tile + 2 * quad) = {__fmul_rn(total[tile][2 * i], factor),
                                                              __fmul_rn(total[tile][2 * i + 1], factor)};
    }
  }
  ggml_cuda_pdl_lc();
}

// A thread block for each row and head, with a thread for each value.
__global__ void MergeKernel(Attention a) {
  const int64_t place = blockIdx.x;
  ggml_cuda_pdl_sync();
  const int values = static_cast<int>(blockDim.x), value = static_cast<int>(threadIdx.x);
  RowState state;
  float total = 0;
  constexpr int kAtOnce = 8;  // chunks whose results are on their way at once
  for (int first = 0; first < a.chunks; first += kAtOnce) {
    float2 states[kAtOnce];
    float sums[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t part = place * a.chunks + min(first + i, a.chunks - 1);
      states[i] = a.partial_state[part];
      sums[i] = a.partial[part * values + value];  // not used if no cell of the chunk was seen
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i >= a.chunks || states[i].x == -INFINITY) continue;
      total = MergeSum(total, sums[i], Merge(&state, states[i].x, states[i].y));
    }
  }
  a.output[place * values + value] = __fmul_rn(total, Normaliser(state, a.sinks, static_cast<int>(place % a.heads)));
  ggml_cuda_pdl_lc();
}

template <int values>
void AttendWith(ggml_backend_cuda_context& context, Attention a) {
  // Warps without rows of their own help to copy the cells.
  const int tiles = (a.rows * a.group + kTile - 1) / kTile;
  const int blocks = (tiles + kMaxWarps - 1) / kMaxWarps;
  const int memories = a.heads / a.group * a.sequences;
  constexpr size_t kShared = 2 * kChunk * (values + 8) * sizeof(half);
  const dim3 threads(32, kMaxWarps);
  // Few thread blocks would leave most of the device idle.
  constexpr size_t kMaxPartial = size_t{1} << 26;  // values
  const int64_t places = static_cast<int64_t>(a.sequences) * a.rows * a.heads;
  const bool few = blocks * memories < 2 * ggml_cuda_info().devices[context.device].nsm;
  if (few && a.chunks > 1 && places * a.chunks * values <= static_cast<int64_t>(kMaxPartial)) {
    ggml_cuda_pool_alloc<float> partial(context.pool(), static_cast<size_t>(places * a.chunks * values));
    ggml_cuda_pool_alloc<float2> state(context.pool(), static_cast<size_t>(places * a.chunks));
    a.partial = partial.get();
    a.partial_state = state.get();
    ggml_cuda_kernel_launch(
        AttentionKernel<values, true>,
        ggml_cuda_kernel_launch_params(dim3(blocks, memories, a.chunks), threads, kShared, context.stream()), a);
    ggml_cuda_kernel_launch(MergeKernel,
                            ggml_cuda_kernel_launch_params(dim3(places), dim3(values), 0, context.stream()), a);
    return;
  }
  ggml_cuda_kernel_launch(AttentionKernel<values, false>,
                          ggml_cuda_kernel_launch_params(dim3(blocks, memories), threads, kShared, context.stream()),
                          a);
}

using Attender = void (*)(ggml_backend_cuda_context&, Attention);

Attender AttenderOf(int64_t values) {
  switch (values) {
    case 64:
      return AttendWith<64>;
    case 80:
      return AttendWith<80>;
    case 96:
      return AttendWith<96>;
    case 112:
      return AttendWith<112>;
    case 128:
      return AttendWith<128>;
    default:
      return nullptr;
  }
}

}  // namespace

bool HasAttention(int64_t head_values) {
  return AttenderOf(head_values) != nullptr;
}

bool CanAttend(const ggml_tensor* output) {
  const ggml_tensor *q = output->src[0], *k = output->src[1], *v = output->src[2], *mask = output->src[3];
  if (!RunsOn(ggml_cuda_get_device())) return false;
  if (mask == nullptr || AttenderOf(k->ne[0]) == nullptr || v->ne[0] != k->ne[0]) return false;
  if (q->type != GGML_TYPE_F32 || k->type != GGML_TYPE_F16 || v->type != GGML_TYPE_F16 || mask->type != GGML_TYPE_F16)
    return false;
  if (q->ne[3] != k->ne[3] || k->ne[3] != v->ne[3] || mask->ne[2] != 1 || q->ne[2] % k->ne[2] != 0 ||
      k->ne[2] != v->ne[2])
    return false;
  for (const ggml_tensor* t : {k, v}) {
    if (t->nb[0] != sizeof(half) || t->nb[1] % 16 != 0 || t->nb[2] % 16 != 0 || t->nb[3] % 16 != 0) return false;
    if (reinterpret_cast<uintptr_t>(t->data) % 16 != 0) return false;
  }
  if (q->nb[0] != sizeof(float) || q->nb[1] % 8 != 0 || q->nb[2] % 8 != 0 || mask->nb[1] % 4 != 0 || k->ne[1] % 2 != 0)
    return false;
  return ggml_is_contiguous(output);
}

void Attend(ggml_backend_cuda_context& context, ggml_tensor* output) {
  const ggml_tensor *q = output->src[0], *k = output->src[1], *v = output->src[2], *mask = output->src[3],
                    *sinks = output->src[4];
  Attention a{};
  a.q = static_cast<const char*>(q->data);
  a.k = static_cast<const char*>(k->data);
  a.v = static_cast<const char*>(v->data);
  a.mask = static_cast<const char*>(mask->data);
  a.sinks = sinks == nullptr ? nullptr : static_cast<const float*>(sinks->data);
  a.output = static_cast<float*>(output->data);
  a.q_row = q->nb[1], a.q_head = q->nb[2], a.q_sequence = q->nb[3];
  a.k_cell = k->nb[1], a.k_head = k->nb[2], a.k_sequence = k->nb[3];
  a.v_cell = v->nb[1], a.v_head = v->nb[2], a.v_sequence = v->nb[3];
  a.mask_row = mask->nb[1], a.mask_sequence = mask->nb[3];
  a.mask_sequences = static_cast<int>(mask->ne[3]);
  a.rows = static_cast<int>(q->ne[1]);
  a.heads = static_cast<int>(q->ne[2]);
  a.group = static_cast<int>(q->ne[2] / k->ne[2]);
  a.sequences = static_cast<int>(q->ne[3]);
  a.cells = static_cast<int>(k->ne[1]);
  a.chunks = (a.cells + kChunk - 1) / kChunk;
  a.scale = ggml_get_op_params_f32(output, 0);
  a.max_bias = ggml_get_op_params_f32(output, 1);
  a.softcap = ggml_get_op_params_f32(output, 2);
  a.slope_heads = 1 << static_cast<int>(std::floor(std::log2(static_cast<float>(a.heads))));
  a.slope0 = std::exp2(-a.max_bias / static_cast<float>(a.slope_heads));
  a.slope1 = std::exp2(-a.max_bias / 2.0f / static_cast<float>(a.slope_heads));
  AttenderOf(k->ne[0])(context, a);
}

}  // namespace outrider::kernels::cuda
