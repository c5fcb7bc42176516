// LlamaModel: a GGUF file in memory, and its tokenizer. Immutable after loading; engines and embedders share it.
#pragma once

#include <llama.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/llama/canonical.h"
#include "engine/llama/llama_adapter.h"
#include "engine/llama/llama_tokenizer.h"
#include "engine/model_options.h"
#include "kernels/plugin.h"

namespace outrider {

// A number of parameters as models are named: "900K", "1.5M", "135M", "0.9B", "13B". From half a billion on in
// billions.
std::string FormatParameterCount(uint64_t parameters);

// Where the options put a model.
enum class Placement {
  kCpu,
  kMixed,
  kDevice,  // all layers on devices other than the CPU
};

class LlamaModel {
 public:
  // Every reason a file cannot be loaded comes back as one sentence.
  static Result<std::shared_ptr<LlamaModel>> Load(const ModelOptions& options);

  const llama_model* handle() const { return handle_.get(); }
  llama_model* handle() { return handle_.get(); }
  const LlamaTokenizer& tokenizer() const { return tokenizer_; }

  const RopeOptions& rope() const { return rope_; }  // for every context of the model

  // Equal for equal files and metadata, different for any other model. Computed from samples of the file.
  uint64_t fingerprint() const { return fingerprint_; }

  // "" if logits of a row do not depend on the rows beside it; else why they may.
  const std::string& exactness_caveat() const { return exactness_caveat_; }

  Placement placement() const { return placement_; }
  bool on_device() const { return placement_ != Placement::kCpu; }

  // Which kernels compute what, for the log: "ggml", "outrider (avx512-vnni) for q4_0 and attention".
  const std::string& kernels() const { return kernels_; }
  // Who computes the attention of every layer, if its memory lies where the layer does.
  Attention attention() const;

  const std::vector<LlamaAdapter>& adapters() const { return adapters_; }  // in the order of the options

  bool has_head() const { return has_head_; }  // for multi-token prediction, loaded with the model

  std::string Architecture() const;  // "llama"; "" if the file does not say
  std::string FileType() const;      // of most weights: "Q4_1"
  // Architecture, number of parameters and file type: "llama 135M Q4_1". The number is that of the weights in the file;
  // llama_model_desc guesses it from the number of layers instead.
  std::string Description() const;
  std::string ChatTemplate() const;  // Jinja; "" if the file has none
  std::string RankTemplate() const;  // with {query} and {document}; "" if the file has none
  bool MixesExperts() const;         // a mixture of experts: each token uses only some of them
  Pos TrainedContext() const { return llama_model_n_ctx_train(handle()); }
  uint64_t SizeBytes() const { return llama_model_size(handle()); }
  uint64_t ParameterCount() const { return llama_model_n_params(handle()); }
  int LayerCount() const { return llama_model_n_layer(handle()); }  // without heads
  int EmbeddingSize() const { return llama_model_n_embd(handle()); }

 private:
  LlamaModel(llama_model* model, RopeOptions rope, uint64_t fingerprint, std::string exactness_caveat,
             Placement placement, std::string kernels, std::unique_ptr<kernels::AttentionHold> attention)
      : handle_(model),
        tokenizer_(llama_model_get_vocab(model)),
        rope_(std::move(rope)),
        fingerprint_(fingerprint),
        exactness_caveat_(std::move(exactness_caveat)),
        placement_(placement),
        kernels_(std::move(kernels)),
        attention_(std::move(attention)) {}

  Status LoadAdapters(const ModelOptions& options);
  std::vector<int> HeadSizes() const;  // all that the file names, and the usual one

  struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  std::unique_ptr<llama_model, Free> handle_;
  LlamaTokenizer tokenizer_;
  RopeOptions rope_;
  uint64_t fingerprint_;
  std::string exactness_caveat_;
  Placement placement_;
  bool has_head_ = false;
  std::string kernels_;
  std::unique_ptr<kernels::AttentionHold> attention_;
  std::vector<LlamaAdapter> adapters_;  // freed before the model
};

}  // namespace outrider
