// What a model and its context are made from. Meanings and defaults follow llama.cpp's flags of the same names; where
// the default differs for exactness, docs/EXACTNESS.md says why. A process may load several models, each with options
// of its own.
#pragma once

#include <string>
#include <vector>

namespace outrider {

enum class Exactness {
  kAuto,  // settings under which logits do not depend on the batch's shape
  kPad,   // in addition, every batch is padded to one shape (apps/target.h): for backends where settings do not help
  kOff,   // the fastest settings
};

enum class Kernels {
  kAuto,      // ours (src/kernels) where they are faster on this CPU
  kGgml,      // ggml's own
  kOutrider,  // ours wherever there are some
};

struct ModelOptions {
  std::string path;                           // GGUF file; of a split model, the first part
  int gpu_layers = -1;                        // layers kept on the devices; -1 = all that they take
  std::vector<std::string> devices;           // names of devices to use ("none" = CPU only); empty = all there are
  std::vector<std::string> rpc_servers;       // host:port of llama.cpp rpc-servers; their devices join the list
  std::vector<std::string> tensor_overrides;  // "pattern=buffer type": where tensors whose name matches are kept
  std::string split_mode = "layer";           // how several devices share the model: none, layer, row
  std::vector<float> tensor_split;            // share of each device; empty = by free memory
  int main_gpu = 0;                           // the device for everything if split_mode is none
  bool mmap = true;                           // map the file instead of reading it
  bool mlock = false;                         // keep the weights from being swapped out
  bool repack = true;                         // let ggml reorder weights for this CPU where it can
  Kernels kernels = Kernels::kAuto;           // on the CPU. For attention all models of a process share one choice
  std::string kernel_trials;                  // file with the results of kernel trials; "" = tried at each load
  Exactness exactness = Exactness::kAuto;  // kAuto and kPad also refuse reorderings that make rows depend on each other
};

enum class FlashAttention { kAuto, kOn, kOff };

struct ContextOptions {
  int context_tokens = 0;  // over all sequences; 0 = min(trained context, 4096) for each
  int n_sequences = 4;     // sequences decoded side by side
  int batch = 2048;        // max rows of one Decode
  int micro_batch = 512;   // rows the backend computes at once
  int max_outputs = 0;  // rows of a batch that may want logits; 0 = 32 for each sequence. Limits the memory for logits
  int threads = 0;      // for batches of one row per sequence; 0 = one per physical core
  int threads_batch = 0;  // for wider batches; 0 = as threads
  FlashAttention flash_attention = FlashAttention::kAuto;
  std::string cache_type_k;  // f32, f16, bf16, q8_0, …; "" = f16; bf16 where exactness asks for it
  std::string cache_type_v;
  bool kv_offload = true;        // keep the memory on the device of its layer
  int snapshot_mib = 256;        // recurrent models: memory for earlier states to go back to
  bool device_snapshots = true;  // recurrent models: the backend keeps the last few states too, where it can
  Exactness exactness = Exactness::kAuto;
  bool fill_gaps = true;  // add a row for idle sequences where that keeps a step in one part and changes nothing else
};

}  // namespace outrider
