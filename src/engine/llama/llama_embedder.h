// Embedder over a libllama context of its own, so that embedding a text never disturbs the sequences being generated.
#pragma once

#include <llama.h>

#include <memory>
#include <string>

#include "base/fair_mutex.h"
#include "engine/embedder.h"
#include "engine/llama/llama_model.h"
#include "engine/model_options.h"

namespace outrider {

class LlamaEmbedder : public Embedder {
 public:
  // `pooling`: mean, cls, last, none (an embedding for each token) or rank; "" = what the model asks for, else mean.
  // Context length and threads come from `options`.
  static Result<std::unique_ptr<LlamaEmbedder>> Create(std::shared_ptr<LlamaModel> model, const ContextOptions& options,
                                                       const std::string& pooling);

  int max_tokens() const override { return static_cast<int>(llama_n_batch(context_.get())); }
  EmbeddingKind kind() const override;
  Result<std::vector<float>> Embed(std::span<const Token> tokens) override;
  Result<std::vector<std::vector<float>>> EmbedEach(std::span<const Token> tokens) override;

 private:
  struct FreeContext {
    void operator()(llama_context* context) const { llama_free(context); }
  };
  using ContextPtr = std::unique_ptr<llama_context, FreeContext>;

  LlamaEmbedder(std::shared_ptr<LlamaModel> model, ContextPtr context)
      : model_(std::move(model)), context_(std::move(context)) {}

  Status Decode(std::span<const Token> tokens);  // with mutex_ held
  const std::shared_ptr<LlamaModel> model_;
  const ContextPtr context_;
  FairMutex mutex_;  // held while the context is in use
};

}  // namespace outrider
