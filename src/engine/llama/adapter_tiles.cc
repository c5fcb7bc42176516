#include "engine/llama/adapter_tiles.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <llama-adapter.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "kernels/layout.h"
#include "kernels/plugin.h"

namespace outrider {
namespace {

int64_t RoundUp(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// Both parts of the change to one weight, as they are and as they will be.
struct Move {
  std::string name;
  llama_adapter_lora_weight from, to;
  float stretch = 1;  // B's values are multiplied by this
};

bool HaveLayout(const std::string& name, const llama_adapter_lora_weight& pair) {
  return name != "token_embd.weight" &&  // its rows are looked up
         kernels::HasLayout(pair.a) && kernels::HasLayout(pair.b->type);
}

std::vector<uint8_t> BytesOf(const ggml_tensor* tensor) {
  std::vector<uint8_t> bytes(ggml_nbytes(tensor));
  ggml_backend_tensor_get(tensor, bytes.data(), 0, bytes.size());
  return bytes;
}

// Copies rows of `from_row` bytes to places `to_row` bytes apart, and matrices of `from_rows` rows to places `to_rows`
// rows apart; zeros fill the rest, which stand for the number 0 in every type that has a layout.
std::vector<uint8_t> Spread(const std::vector<uint8_t>& bytes, int64_t matrices, int64_t from_rows, int64_t to_rows,
                            size_t from_row, size_t to_row) {
  std::vector<uint8_t> spread(static_cast<size_t>(matrices * to_rows) * to_row);
  for (int64_t i = 0; i < matrices * from_rows; ++i) {
    const int64_t row = i / from_rows * to_rows + i % from_rows;
    std::memcpy(spread.data() + static_cast<size_t>(row) * to_row, bytes.data() + static_cast<size_t>(i) * from_row,
                from_row);
  }
  return spread;
}

void MoveA(const Move& move) {
  const ggml_tensor* from = move.from.a;
  const size_t row = ggml_row_size(from->type, from->ne[0]);
  const auto bytes = Spread(BytesOf(from), from->ne[2], from->ne[1], move.to.a->ne[1], row, row);
  ggml_backend_tensor_set(move.to.a, bytes.data(), 0, bytes.size());
}

void MoveB(const Move& move) {
  const ggml_tensor *from = move.from.b, *to = move.to.b;
  std::vector<uint8_t> bytes = BytesOf(from);
  if (to->type != from->type) {  // it is stretched
    std::vector<float> values(static_cast<size_t>(ggml_nelements(from)));
    ggml_get_type_traits(from->type)->to_float(bytes.data(), values.data(), ggml_nelements(from));
    bytes.resize(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  if (move.stretch != 1) {
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) values[i] *= move.stretch;
  }
  bytes = Spread(bytes, from->ne[2], from->ne[1], from->ne[1], ggml_row_size(to->type, from->ne[0]),
                 ggml_row_size(to->type, to->ne[0]));
  ggml_backend_tensor_set(move.to.b, bytes.data(), 0, bytes.size());
}

float Growth(const Move& move) {
  return static_cast<float>(move.to.b->ne[0]) / static_cast<float>(move.from.b->ne[0]);
}

// libllama divides alpha by the rank, which it takes from B's shape. So when ranks are filled up, alpha must grow by
// the factor that is returned; and where a rank grows by another one, B's values make up for it.
float KeepScales(std::vector<Move>& moves, ggml_context* context, const llama_adapter_lora& adapter) {
  if (adapter.alpha == 0) return 1;  // then it does not divide
  const float common = moves.size() == adapter.ab_map.size() ? Growth(moves.front()) : 1;
  for (Move& move : moves) {
    move.stretch = Growth(move) / common;
    if (move.stretch == 1) continue;
    const ggml_tensor* b = move.to.b;
    move.to.b = ggml_new_tensor_3d(context, GGML_TYPE_F32, b->ne[0], b->ne[1], b->ne[2]);
  }
  return common;
}

}  // namespace

void PutInTiles(llama_adapter_lora* adapter) {
  std::vector<Move> moves;
  for (const auto& [name, pair] : adapter->ab_map) {
    if (HaveLayout(name, pair)) moves.push_back({name, pair, {}});
  }
  if (moves.empty()) return;
  ggml_context_ptr context(ggml_init({ggml_tensor_overhead() * 4 * moves.size(), nullptr, true}));
  for (Move& move : moves) {
    const ggml_tensor *a = move.from.a, *b = move.from.b;
    const int64_t rank = RoundUp(b->ne[0], kernels::BlockValues(b->type));
    move.to.a = ggml_new_tensor_3d(context.get(), a->type, a->ne[0], rank, a->ne[2]);
    move.to.b = ggml_new_tensor_3d(context.get(), b->type, rank, b->ne[1], b->ne[2]);
  }
  const float growth = KeepScales(moves, context.get(), *adapter);
  ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors_from_buft(context.get(), kernels::BufferType()));
  if (buffer == nullptr) return;  // no memory: they stay as they are
  ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  for (const Move& move : moves) {
    MoveA(move);
    MoveB(move);
    ggml_set_name(move.to.a, move.from.a->name);
    ggml_set_name(move.to.b, move.from.b->name);
    adapter->ab_map[move.name] = move.to;
  }
  adapter->alpha *= growth;
  if (moves.size() == adapter->ab_map.size()) {
    adapter->bufs.clear();
    adapter->ctxs.clear();
  }
  adapter->ctxs.push_back(std::move(context));
  adapter->bufs.push_back(std::move(buffer));
}

std::vector<ggml_type> TypesNotInTiles(const llama_adapter_lora& adapter) {
  std::set<ggml_type> types;
  for (const auto& [name, pair] : adapter.ab_map) {
    for (const ggml_tensor* tensor : {pair.a, pair.b}) {
      if (ggml_backend_buffer_get_type(tensor->buffer) != kernels::BufferType()) types.insert(tensor->type);
    }
  }
  return {types.begin(), types.end()};
}

}  // namespace outrider
