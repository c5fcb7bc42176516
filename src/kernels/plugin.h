// Adds our kernels to ggml's CPU backend without a patch, as one more of its "extra buffer types", in front of ggml's
// own. Weights in this buffer type lie in our layout and are multiplied by our kernels, in ggml's thread pool.
// Attention over the KV memory is computed by our kernels too. Everything else stays with ggml.
#pragma once

#include <ggml-backend.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace outrider::kernels {

// The instruction set in use ("avx512-vnni", "avx2", "neon-dotprod"), the best one this CPU has kernels for; "" if
// there are none.
std::string_view InstructionSet();

// Registers the buffer type with ggml. Must be called before the first model is loaded, because ggml copies its list
// then. Further calls do nothing, nor does it do anything on a CPU without kernels.
void Install();

ggml_backend_buffer_type_t BufferType();

// The buffer type in which ggml itself would keep weights of this type and shape: one that reorders them for this CPU,
// if ggml has one.
ggml_backend_buffer_type_t GgmlBufferType(ggml_type type, int64_t row_values, int64_t rows);

// While such an object exists on a thread, models loaded by that thread keep weights of some types in our buffer type:
// those of `in_tiles` in our layout, if the shape allows it; those of `as_they_are` as in the file, so that ggml does
// not reorder them. All other weights are loaded as without our buffer type.
class TakeWeights {
 public:
  TakeWeights(std::span<const ggml_type> in_tiles, std::span<const ggml_type> as_they_are);
  ~TakeWeights();
  TakeWeights(const TakeWeights&) = delete;
  TakeWeights& operator=(const TakeWeights&) = delete;

  // The types of `in_tiles` of which there were weights in main memory since this object exists.
  std::vector<ggml_type> Taken() const;

 private:
  std::vector<ggml_type> in_tiles_;
  uint64_t in_tiles_before_, as_they_are_before_, taken_before_;
};

// The choice whether our kernels compute attention in this process, wherever they can. An attention operation does not
// say which model it belongs to, so all models share one choice. It is held while one of them exists, and can only be
// changed when none does. At the start it is off.
class AttentionHold {
 public:
  // Null if other models hold the opposite choice.
  static std::unique_ptr<AttentionHold> Take(bool ours);
  ~AttentionHold();
  AttentionHold(const AttentionHold&) = delete;
  AttentionHold& operator=(const AttentionHold&) = delete;

 private:
  AttentionHold() = default;
};
bool AttentionIsHeld();
bool AttentionIsOurs();

// For tests and benchmarks: uses another of the kernel sets that this CPU can run (kernel_set.h); "" for the best one.
// False if there is none with that name.
bool UseInstructionSet(std::string_view name);

}  // namespace outrider::kernels
