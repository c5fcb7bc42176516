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

// How positions are encoded. A value that is set replaces that of the model's file, and changes what the model
// computes.
struct RopeOptions {
  std::string scaling;          // none, linear, yarn; "" = as the file says
  float scale = 0;              // the context is stretched by this factor; 0 = as the file says
  float freq_base = 0;          // base frequency; 0 = as the file says
  float freq_scale = 0;         // 1 / scale; 0 = as the file says
  int yarn_orig_ctx = 0;        // YaRN: the context the model was trained for; 0 = as the file says
  float yarn_ext_factor = -1;   // YaRN: the mix of extrapolation; -1 = the usual
  float yarn_attn_factor = -1;  // YaRN: the scale of attention; -1 = the usual
  float yarn_beta_slow = -1;
  float yarn_beta_fast = -1;

  bool operator==(const RopeOptions&) const = default;
};

struct ModelOptions {
  std::string path;                           // GGUF file; of a split model, the first part
  int gpu_layers = -1;                        // layers kept on the devices; -1 = all layers (as in libllama)
  std::vector<std::string> devices;           // names of devices to use ("none" = CPU only); empty = all there are
  std::vector<std::string> rpc_servers;       // host:port of llama.cpp rpc-servers; their devices join the list
  std::vector<std::string> tensor_overrides;  // "pattern=buffer type": where tensors whose name matches are kept
  bool cpu_moe = false;                       // keep the weights of experts in main memory
  int n_cpu_moe = 0;                          // the same for the first layers only
  int n_cpu_ffn = 0;                          // the first layers whose dense feed-forward weights are kept there
  std::vector<std::string> kv_overrides;      // "key=type:value": metadata that replace the file's
  RopeOptions rope;
  std::string split_mode = "layer";        // how several devices share the model: none, layer, row, tensor
  std::vector<float> tensor_split;         // share of each device; empty = by free memory
  int main_gpu = 0;                        // the device for everything if split_mode is none
  bool mmap = true;                        // map the file instead of reading it
  bool mlock = false;                      // keep the weights from being swapped out
  std::string load_mode;                   // auto, none, mmap, mlock, mmap+mlock, dio; "" = by mmap and mlock
  std::string lazy_mode = "auto";          // rows of large embeddings are read when they are needed: on, auto, off
  bool check_tensors = false;              // look for weights that are not numbers
  bool no_host = false;                    // no memory that devices can read directly
  bool repack = true;                      // let ggml reorder weights for this CPU where it can
  Kernels kernels = Kernels::kAuto;        // on the CPU. For attention all models of a process share one choice
  std::string kernel_trials;               // file with the results of kernel trials; "" = tried at each load
  std::vector<std::string> adapters;       // files of adapters (LoRA), which batches may use
  bool heads = false;                      // load the head for multi-token prediction too, if the file has one
  Exactness exactness = Exactness::kAuto;  // kAuto and kPad also refuse reorderings that make rows depend on each other
};

enum class FlashAttention { kAuto, kOn, kOff };

// Where and how compute threads run. There are two sets of these options: what is not set for the threads that read
// prompts is as for the threads that generate, and what is not set for those is the system's default.
struct CpuOptions {
  static constexpr int kUnset = -100;

  std::string mask;       // hexadecimal, a bit for each CPU
  std::string range;      // "0-3": CPUs in addition to those of the mask; "" for both = any CPU
  int strict = kUnset;    // 1 = each thread stays on one CPU
  int priority = kUnset;  // -1 = low, 0 = normal, 1 = medium, 2 = high, 3 = real time
  int poll = kUnset;      // 0 to 100: how long idle threads look for work before they sleep

  bool operator==(const CpuOptions&) const = default;
};

struct ContextOptions {
  // Over all sequences; 0 = min(trained context, 4096) for each. If n_sequences is kAuto: for each.
  int context_tokens = 0;
  static constexpr int kAuto = -1;
  int n_sequences = 4;    // sequences decoded side by side; kAuto = up to 4, as the memory for their contexts allows
  int batch = 2048;       // max rows of one Decode
  int micro_batch = 512;  // rows the backend computes at once
  int max_outputs = 0;  // rows of a batch that may want logits; 0 = 32 for each sequence. Limits the memory for logits
  int threads = 0;      // for batches of one row per sequence; 0 = one per physical core
  int threads_batch = 0;  // for wider batches; 0 = as threads
  CpuOptions cpu, cpu_batch;
  bool op_offload = true;  // wide products of weights in main memory may be computed on a device (Exactness::kOff only)
  FlashAttention flash_attention = FlashAttention::kAuto;
  std::string cache_type_k;  // f32, f16, bf16, q8_0, …; "" = f16; bf16 where exactness asks for it
  std::string cache_type_v;
  bool kv_offload = true;        // keep the memory on the device of its layer
  int snapshot_mib = 256;        // recurrent models: memory for earlier states to go back to
  bool device_snapshots = true;  // recurrent models: the backend keeps the last few states too, where it can
  Exactness exactness = Exactness::kAuto;
  bool fill_gaps = true;  // add a row for idle sequences where that keeps a step in one part and changes nothing else
};

// A projector, by which a model reads pictures.
struct MediaOptions {
  std::string path;     // GGUF file; "" = none
  bool offload = true;  // compute on the model's device
  int min_tokens = -1;  // of a picture, if the model reads pictures of different sizes; -1 = as the file says
  int max_tokens = -1;
  int threads = 0;  // on the CPU; 0 = one per physical core
};

}  // namespace outrider
