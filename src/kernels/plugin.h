// The kernels inside ggml's CPU backend, without a patch: one more of its "extra buffer types", put in front of its
// own. Weights that a model keeps in this buffer type lie in our layout and are multiplied by our kernels, in ggml's
// own thread pool; attention over the KV memory is taken over too. Everything else is ggml's as before.
#pragma once

#include <ggml-backend.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace outrider::kernels {

// The instruction set in use ("avx512-vnni", "avx2", "neon-dotprod"), the best one this CPU has kernels for; "" if
// there are none.
std::string_view InstructionSet();

// Makes the buffer type known to ggml. Must come before the first model is loaded, since ggml copies its list then;
// once is enough. Without an instruction set it does nothing.
void Install();

ggml_backend_buffer_type_t BufferType();

// The buffer type ggml itself would keep weights of this type and shape in: reordered for this CPU where it knows how.
ggml_backend_buffer_type_t GgmlBufferType(ggml_type type, int64_t row_values, int64_t rows);

// While alive on a thread, models loaded by that thread keep weights of some types with us: those of `in_tiles` in our
// layout, where the shape allows it; those of `as_they_are` as in the file, for ggml's kernels, and not reordered by
// ggml. All others are loaded as if we did not exist.
class TakeWeights {
 public:
  TakeWeights(std::span<const ggml_type> in_tiles, std::span<const ggml_type> as_they_are);
  ~TakeWeights();
  TakeWeights(const TakeWeights&) = delete;
  TakeWeights& operator=(const TakeWeights&) = delete;

 private:
  uint64_t in_tiles_before_, as_they_are_before_;
};

// Whether attention in this process is ours wherever we can do it. Nothing in the operation says whose it is, so it is
// one choice for all models: held while one of them lives, and changed only when none does. Off at the start.
class AttentionHold {
 public:
  // Null if others hold the opposite choice.
  static std::unique_ptr<AttentionHold> Take(bool ours);
  ~AttentionHold();
  AttentionHold(const AttentionHold&) = delete;
  AttentionHold& operator=(const AttentionHold&) = delete;

 private:
  AttentionHold() = default;
};
bool AttentionIsHeld();
bool AttentionIsOurs();

// For tests and benchmarks: another of the sets this CPU can run (kernel_set.h); "" for the best one. False if there is
// none of that name.
bool UseInstructionSet(std::string_view name);

}  // namespace outrider::kernels
