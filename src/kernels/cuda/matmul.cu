#include <unary.cuh>

#include "kernels/cuda/instructions.cuh"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/weights.cuh"

namespace outrider::kernels::cuda {
namespace {

constexpr int kBlock = 32;    // weights, and inputs, that share a scale
constexpr int kTile = 16;     // rows of a tensor core's tile
constexpr int kColumns = 8;   // columns of a tensor core's tile
constexpr int kParts = 8;     // a row is cut into so many parts, which are added in order; a warp computes one
constexpr int kThreads = 32;  // of a warp

// 2^23 + 2^22 as an integer's bits: an integer added to it is, read as a float, that much more than 2^23 + 2^22.
// Cheaper than a conversion, and exact for all sums of 32 products of bytes.
constexpr int kMagicBits = 0x4B400000;
constexpr float kMagic = 12582912.0f;

struct Quantised {
  int first, second;  // four signed bytes each
  float scale;
  float sum;  // of the inputs that the bytes stand for
};

// The scale of a block of inputs whose largest value is `max`, and its inverse.
__device__ __forceinline__ float2 InputScale(float max) {
  return {__fmul_rn(max, 1.0f / 127.0f), max == 0.0f ? 0.0f : __fdividef(127.0f, max)};
}

__device__ __forceinline__ int Bytes(float4 values, float inverse) {
  const int a = __float2int_rn(__fmul_rn(values.x, inverse)), b = __float2int_rn(__fmul_rn(values.y, inverse));
  const int c = __float2int_rn(__fmul_rn(values.z, inverse)), d = __float2int_rn(__fmul_rn(values.w, inverse));
  return static_cast<int>(__byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410));
}

__device__ __forceinline__ float LargestOf(float4 v) {
  return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

// Quantises a block whose 32 values four neighbouring threads hold, 8 each.
__device__ __forceinline__ Quantised Quantise(float4 first, float4 second) {
  float max = fmaxf(LargestOf(first), LargestOf(second));
  max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
  max = fmaxf(max, __shfl_xor_sync(~0u, max, 2));
  const float2 scale = InputScale(max);
  Quantised result{Bytes(first, scale.y), Bytes(second, scale.y), scale.x, 0};
  int sum = __dp4a(result.first, 0x01010101, __dp4a(result.second, 0x01010101, 0));
  sum += __shfl_xor_sync(~0u, sum, 1);
  sum += __shfl_xor_sync(~0u, sum, 2);
  result.sum = __fmul_rn(scale.x, static_cast<float>(sum));
  return result;
}

// What a thread needs of a block of 8 columns.
struct ColumnBlock {
  int first, second;    // of the thread's column of the tensor cores' input
  float2 scales, sums;  // of the thread's two columns of the result
};

// Adds the products of a block of 16 rows with a block of 8 columns.
template <typename Weights>
__device__ __forceinline__ void AddBlock(float (&sum)[4], const BlockWeights& low, const BlockWeights& high,
                                         const ColumnBlock& columns) {
  float product[4];
  if constexpr (Weights::kTwoScales) {
    int first[4] = {0, 0, 0, 0}, second[4] = {0, 0, 0, 0};
    MultiplyBytes16(first, low.first, high.first, columns.first);
    MultiplyBytes16(second, low.second, high.second, columns.second);
    for (int i = 0; i < 4; ++i) {
      const BlockWeights& row = i < 2 ? low : high;
      product[i] = __int2float_rn(first[i] * row.scale_first + second[i] * row.scale_second);
    }
  } else {
    int bits[4] = {kMagicBits, kMagicBits, kMagicBits, kMagicBits};
    MultiplyBytes32(bits, low.first, high.first, low.second, high.second, columns.first, columns.second);
    for (int i = 0; i < 4; ++i) product[i] = __fsub_rn(__int_as_float(bits[i]), kMagic);
  }
  for (int i = 0; i < 4; ++i) {
    const BlockWeights& row = i < 2 ? low : high;
    sum[i] = __fmaf_rn(product[i], __fmul_rn(row.scale, i % 2 == 0 ? columns.scales.x : columns.scales.y), sum[i]);
    if constexpr (Weights::kHasMin) sum[i] = __fmaf_rn(row.min, i % 2 == 0 ? columns.sums.x : columns.sums.y, sum[i]);
  }
}

// Inputs as they are, quantised by the threads that need them: for few columns.
struct PlainInput {
  const float* values;
  int64_t stride;  // of a column, in values
};

// Inputs that were quantised before.
struct QuantisedInput {
  const int8_t* bytes;   // column after column
  const float2* scales;  // by block and column: the scale and the sum
  int64_t stride;        // of a column, in bytes
  int columns;           // a multiple of those of a thread block
};

// Fetch() loads what a thread needs of a block of 8 columns, and Columns() makes a ColumnBlock of it. They are two
// steps so that several blocks can be on their way at once.
struct PlainColumns {
  float4 first, second;
};

template <typename Weights>
__device__ __forceinline__ PlainColumns Fetch(const PlainInput& input, int first_column, int columns, int block,
                                              int lane) {
  const int quad = lane % 4, column = first_column + lane / 4;
  if (column >= columns) return {{0, 0, 0, 0}, {0, 0, 0, 0}};
  const float* values = input.values + column * input.stride + static_cast<int64_t>(block) * kBlock;
  return {*reinterpret_cast<const float4*>(values + Weights::First(quad)),
          *reinterpret_cast<const float4*>(values + Weights::Second(quad))};
}

template <typename Weights>
__device__ __forceinline__ ColumnBlock Columns(const PlainColumns& fetched, int lane) {
  const int quad = lane % 4;
  const Quantised q = Quantise(fetched.first, fetched.second);
  ColumnBlock columns{q.first, q.second, {}, {}};
  // Columns 2 * quad and 2 * quad + 1 are held by other threads.
  columns.scales = {__shfl_sync(~0u, q.scale, 8 * quad), __shfl_sync(~0u, q.scale, 8 * quad + 4)};
  if constexpr (Weights::kHasMin)
    columns.sums = {__shfl_sync(~0u, q.sum, 8 * quad), __shfl_sync(~0u, q.sum, 8 * quad + 4)};
  return columns;
}

template <typename Weights>
__device__ __forceinline__ ColumnBlock Fetch(const QuantisedInput& input, int first_column, int /*columns*/, int block,
                                             int lane) {
  const int quad = lane % 4;
  const int8_t* bytes = input.bytes + (first_column + lane / 4) * input.stride + static_cast<int64_t>(block) * kBlock;
  const float4 both = *reinterpret_cast<const float4*>(input.scales + static_cast<int64_t>(block) * input.columns +
                                                       first_column + 2 * quad);
  return {*reinterpret_cast<const int*>(bytes + Weights::First(quad)),
          *reinterpret_cast<const int*>(bytes + Weights::Second(quad)),
          {both.x, both.z},
          {both.y, both.w}};
}

template <typename Weights>
__device__ __forceinline__ ColumnBlock Columns(const ColumnBlock& fetched, int /*lane*/) {
  return fetched;
}

struct Product {
  const char* weights;
  const float* bias;  // may be null
  float* output;
  int64_t row_bytes;
  int64_t output_stride;  // of a column, in values
  int values;             // of a row
  int rows;
  int columns;
  bool constant_weights;  // no kernel writes them, so they may be read before earlier kernels have ended
};

// Products of the same shape with the same input, computed at once.
struct Products {
  Product of[2];
  int count;
};

// Sums of one part of `row_tiles` x 16 rows and `tiles` x 8 columns.
template <typename Weights, int row_tiles, int tiles, typename Input>
__device__ __forceinline__ void SumPart(const Product& product, const Input& input, int first_row, int first_column,
                                        int part, float (&sums)[row_tiles][tiles][4]) {
  // Blocks of weights, and of columns, that are loaded at once, as far as there are registers for them: a small product
  // takes as long as its loads have to be waited for.
  constexpr int kTiles = row_tiles * tiles, kStepBlocks = Weights::kStepBlocks;
  constexpr int kSteps = kTiles == 1 ? 8 / kStepBlocks : kTiles == 2 && kStepBlocks < 4 ? 4 / kStepBlocks : 1;
  constexpr int kFetched = kTiles == 1 ? 4 : kTiles == 2 && kStepBlocks * kSteps > 1 ? 2 : 1;
  const int lane = static_cast<int>(threadIdx.x), quad = lane % 4;
  const char* rows[row_tiles][2];
  for (int r = 0; r < row_tiles; ++r) {
    for (int half = 0; half < 2; ++half) {
      const int row = min(first_row + kTile * r + 8 * half + lane / 4, product.rows - 1);
      rows[r][half] = product.weights + row * product.row_bytes;
    }
  }
  const int steps = product.values / (kBlock * Weights::kStepBlocks);
  const int end = steps * (part + 1) / kParts;
  int step = steps * part / kParts;
  if (!product.constant_weights) ggml_cuda_pdl_sync();
  typename Weights::Step loaded[kSteps][row_tiles][2];
  const auto load = [&] {
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
#pragma unroll
      for (int r = 0; r < row_tiles; ++r) {
        loaded[i][r][0] = Weights::Load(rows[r][0], min(step + i, end - 1), quad);
        loaded[i][r][1] = Weights::Load(rows[r][1], min(step + i, end - 1), quad);
      }
    }
  };
  if (step < end) load();
  if (product.constant_weights) ggml_cuda_pdl_sync();
  for (; step < end;) {
#pragma unroll
    for (int first = 0; first < kSteps * kStepBlocks; first += kFetched) {
      const int first_block = step * kStepBlocks + first, last_block = end * kStepBlocks - 1;
      decltype(Fetch<Weights>(input, 0, 0, 0, 0)) fetched[kFetched][tiles];
#pragma unroll
      for (int i = 0; i < kFetched; ++i) {
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
          fetched[i][tile] = Fetch<Weights>(input, first_column + kColumns * tile, product.columns,
                                            min(first_block + i, last_block), lane);
        }
      }
#pragma unroll
      for (int i = 0; i < kFetched; ++i) {
        if (first_block + i > last_block) break;
        const int in_step = (first + i) % kStepBlocks, which = (first + i) / kStepBlocks;
        BlockWeights low[row_tiles], high[row_tiles];
#pragma unroll
        for (int r = 0; r < row_tiles; ++r) {
          low[r] = Weights::Block(loaded[which][r][0], in_step, step + which);
          high[r] = Weights::Block(loaded[which][r][1], in_step, step + which);
        }
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
          const ColumnBlock columns = Columns<Weights>(fetched[i][tile], lane);
#pragma unroll
          for (int r = 0; r < row_tiles; ++r) AddBlock<Weights>(sums[r][tile], low[r], high[r], columns);
        }
      }
    }
    step += kSteps;
    if (step < end) load();
  }
}

// Each of the kParts warps of a thread block sums one part of the rows; then the parts are added in order. blockIdx:
// rows, columns, product.
template <typename Weights, int row_tiles, int tiles, typename Input>
__global__ void __launch_bounds__(kThreads* kParts, row_tiles* tiles <= 8 ? 2 : 1)
    MultiplyKernel(Products products, Input input) {
  constexpr int kRows = kTile * row_tiles;
  // Tiles of columns that are added at a time, so that the sums fit into the memory of a thread block.
  constexpr int kAtOnce = row_tiles * tiles > 8 ? 8 / row_tiles : tiles;
  __shared__ float parts[kParts][kColumns * kAtOnce][kRows];
  const Product product = blockIdx.z == 0 ? products.of[0] : products.of[1];
  const int first_row = static_cast<int>(blockIdx.x) * kRows;
  const int first_column = static_cast<int>(blockIdx.y) * kColumns * tiles;
  const int warp = static_cast<int>(threadIdx.y), lane = static_cast<int>(threadIdx.x);
  float sums[row_tiles][tiles][4] = {};
  SumPart<Weights, row_tiles, tiles>(product, input, first_row, first_column, warp, sums);
#pragma unroll
  for (int first_tile = 0; first_tile < tiles; first_tile += kAtOnce) {
    if (first_tile > 0) __syncthreads();
#pragma unroll
    for (int tile = 0; tile < kAtOnce; ++tile) {
#pragma unroll
      for (int r = 0; r < row_tiles; ++r) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          parts[warp][kColumns * tile + 2 * (lane % 4) + i % 2][kTile * r + 8 * (i / 2) + lane / 4] =
              sums[r][first_tile + tile][i];
        }
      }
    }
    __syncthreads();
    for (int place = warp * kThreads + lane; place < kRows * kColumns * kAtOnce; place += kThreads * kParts) {
      const int row = first_row + place % kRows, at = place / kRows;
      const int column = first_column + kColumns * first_tile + at;
      if (row >= product.rows || column >= product.columns) continue;
      float value = parts[0][at][place % kRows];
      for (int p = 1; p < kParts; ++p) value = __fadd_rn(value, parts[p][at][place % kRows]);
      if (product.bias != nullptr) value = __fadd_rn(value, product.bias[column * product.output_stride + row]);
      product.output[column * product.output_stride + row] = value;
    }
  }
  ggml_cuda_pdl_lc();
}

// A thread quantises four values; eight threads share a block. Columns beyond `columns` become zero.
__global__ void QuantiseKernel(PlainInput input, QuantisedInput output, int8_t* bytes, float2* scales, int values,
                               int columns) {
  const int column = static_cast<int>(blockIdx.y);
  const int place = 4 * static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  ggml_cuda_pdl_sync();
  const bool inside = place < values;
  float4 v{0, 0, 0, 0};
  if (inside && column < columns) v = *reinterpret_cast<const float4*>(input.values + column * input.stride + place);
  float max = LargestOf(v);
  for (int distance = 1; distance < 8; distance *= 2) max = fmaxf(max, __shfl_xor_sync(~0u, max, distance));
  const float2 scale = InputScale(max);
  const int packed = Bytes(v, scale.y);
  int sum = __dp4a(packed, 0x01010101, 0);
  for (int distance = 1; distance < 8; distance *= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (!inside) return;
  *reinterpret_cast<int*>(bytes + column * output.stride + place) = packed;
  if (place % kBlock == 0) {
    scales[static_cast<int64_t>(place / kBlock) * output.columns + column] = {
        scale.x, __fmul_rn(scale.x, static_cast<float>(sum))};
  }
}

template <typename Weights, int row_tiles, int tiles, typename Input>
void Launch(const Products& products, const Input& input, cudaStream_t stream) {
  const Product& product = products.of[0];
  const dim3 blocks((product.rows + kTile * row_tiles - 1) / (kTile * row_tiles),
                    (product.columns + kColumns * tiles - 1) / (kColumns * tiles), products.count);
  ggml_cuda_kernel_launch(MultiplyKernel<Weights, row_tiles, tiles, Input>,
                          ggml_cuda_kernel_launch_params(blocks, dim3(kThreads, kParts), 0, stream), products, input);
}

template <typename Weights>
void MultiplyBy(ggml_backend_cuda_context& context, const Products& products, const PlainInput& plain) {
  cudaStream_t stream = context.stream();
  const int columns = products.of[0].columns, values = products.of[0].values;
  if (columns <= kColumns) return Launch<Weights, 1, 1>(products, plain, stream);
  if (columns <= 2 * kColumns) return Launch<Weights, 1, 2>(products, plain, stream);
  const int padded = GGML_PAD(columns, 8 * kColumns);
  ggml_cuda_pool_alloc<int8_t> bytes(context.pool(), static_cast<size_t>(padded) * values);
  ggml_cuda_pool_alloc<float2> scales(context.pool(), static_cast<size_t>(padded) * (values / kBlock));
  const QuantisedInput input{bytes.get(), scales.get(), values, padded};
  constexpr int kQuantiseThreads = 128;
  const dim3 blocks((values / 4 + kQuantiseThreads - 1) / kQuantiseThreads, padded);
  ggml_cuda_kernel_launch(QuantiseKernel, ggml_cuda_kernel_launch_params(blocks, dim3(kQuantiseThreads), 0, stream),
                          plain, input, bytes.get(), scales.get(), values, columns);
  if (columns <= 4 * kColumns) return Launch<Weights, 1, 4>(products, input, stream);
  if (columns <= 8 * kColumns) return Launch<Weights, 1, 8>(products, input, stream);
  Launch<Weights, 2, 8>(products, input, stream);
}

using Multiplier = void (*)(ggml_backend_cuda_context&, const Products&, const PlainInput&);

template <typename... Weights>
Multiplier Find(ggml_type type) {
  Multiplier found = nullptr;
  ((found = type == Weights::kType ? MultiplyBy<Weights> : found), ...);
  return found;
}

Multiplier MultiplierOf(ggml_type type) {
  return Find<WeightsQ4_0, WeightsQ4_1, WeightsQ5_0, WeightsQ5_1, WeightsQ8_0, WeightsQ4_K, WeightsQ5_K, WeightsQ6_K>(
      type);
}

bool IsPlainMatrix(const ggml_tensor* t) {
  return t->ne[2] == 1 && t->ne[3] == 1 && t->nb[0] == ggml_type_size(t->type);
}

using GluOperation = void (*)(ggml_backend_cuda_context&, ggml_tensor*);

GluOperation GluOperationOf(ggml_glu_op op) {
  switch (op) {
    case GGML_GLU_OP_SWIGLU:
      return ggml_cuda_op_swiglu;
    case GGML_GLU_OP_GEGLU:
      return ggml_cuda_op_geglu;
    case GGML_GLU_OP_SWIGLU_OAI:
      return ggml_cuda_op_swiglu_oai;
    default:
      return nullptr;
  }
}

bool IsAligned(const ggml_tensor* t) {
  return reinterpret_cast<uintptr_t>(t->data) % 16 == 0 && t->nb[1] % 16 == 0;
}

bool IsWeightsOfOurs(const ggml_tensor* t) {
  const bool needs_alignment = t->type == GGML_TYPE_Q4_K || t->type == GGML_TYPE_Q5_K;
  return HasMatmul(t->type) && IsPlainMatrix(t) && (IsAligned(t) || !needs_alignment);
}

Product MakeProduct(const ggml_tensor* weights, const ggml_tensor* input, const ggml_tensor* bias,
                    ggml_tensor* output) {
  Product product{};
  product.weights = static_cast<const char*>(weights->data);
  product.bias = bias == nullptr ? nullptr : static_cast<const float*>(bias->data);
  product.output = static_cast<float*>(output->data);
  product.row_bytes = static_cast<int64_t>(weights->nb[1]);
  product.output_stride = static_cast<int64_t>(output->nb[1] / sizeof(float));
  product.values = static_cast<int>(weights->ne[0]);
  product.rows = static_cast<int>(weights->ne[1]);
  product.columns = static_cast<int>(input->ne[1]);
  product.constant_weights = ggml_backend_buffer_get_usage(weights->buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
  return product;
}

}  // namespace

bool HasMatmul(ggml_type type) {
  return MultiplierOf(type) != nullptr;
}

bool CanMultiply(const ggml_tensor* weights, const ggml_tensor* input, const ggml_tensor* ids,
                 const ggml_tensor* output, const ggml_cuda_mm_fusion_args_host* fusion) {
  if (!RunsOn(ggml_cuda_get_device())) return false;
  if (ids != nullptr || !IsWeightsOfOurs(weights) || input->type != GGML_TYPE_F32 || output->type != GGML_TYPE_F32)
    return false;
  if (!IsPlainMatrix(input) || !IsPlainMatrix(output) || !IsAligned(input)) return false;
  if (fusion == nullptr) return true;
  if (fusion->x_scale != nullptr || fusion->gate_scale != nullptr) return false;
  if (fusion->gate == nullptr) return true;
  const ggml_tensor *gate = output->src[0], *up = output->src[1];
  return output->op == GGML_OP_GLU && gate != nullptr && up != nullptr && IsPlainMatrix(gate) && IsPlainMatrix(up) &&
         IsWeightsOfOurs(fusion->gate) && fusion->gate->type == weights->type &&
         GluOperationOf(fusion->glu_op) != nullptr;
}

void Multiply(ggml_backend_cuda_context& context, const ggml_tensor* weights, const ggml_tensor* input,
              ggml_tensor* output, const ggml_cuda_mm_fusion_args_host* fusion) {
  const PlainInput plain{static_cast<const float*>(input->data), static_cast<int64_t>(input->nb[1] / sizeof(float))};
  const Multiplier multiply = MultiplierOf(weights->type);
  const ggml_tensor* bias = fusion == nullptr ? nullptr : fusion->x_bias;
  if (fusion == nullptr || fusion->gate == nullptr) {
    return multiply(context, {{MakeProduct(weights, input, bias, output)}, 1}, plain);
  }
  // Two products and their glu were joined: the products go where they would go by themselves.
  multiply(context,
           {{MakeProduct(weights, input, bias, output->src[1]),
             MakeProduct(fusion->gate, input, fusion->gate_bias, output->src[0])},
            2},
           plain);
  GluOperationOf(fusion->glu_op)(context, output);
}

}  // namespace outrider::kernels::cuda
