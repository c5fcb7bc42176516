#include "engine/llama/llama_embedder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "engine/llama/backend.h"
#include "engine/llama/llama_context.h"

namespace outrider {
namespace {

constexpr int kMaxTokens = 2048;  // pooling needs the whole text in one computation

Result<enum llama_pooling_type> ParsePooling(const std::string& name) {
  if (name.empty()) return LLAMA_POOLING_TYPE_UNSPECIFIED;
  if (name == "mean") return LLAMA_POOLING_TYPE_MEAN;
  if (name == "cls") return LLAMA_POOLING_TYPE_CLS;
  if (name == "last") return LLAMA_POOLING_TYPE_LAST;
  return InvalidArgument(fmt::format("--pooling '{}' is not one of mean, cls, last", name));
}

}  // namespace

Result<std::unique_ptr<LlamaEmbedder>> LlamaEmbedder::Create(std::shared_ptr<LlamaModel> model,
                                                             const ContextOptions& options,
                                                             const std::string& pooling) {
  auto pooling_type = ParsePooling(pooling);
  if (!pooling_type.ok()) return pooling_type.status();
  const auto tokens = static_cast<uint32_t>(std::min<Pos>(model->TrainedContext(), kMaxTokens));
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = tokens;
  params.n_seq_max = 1;
  params.n_threads = params.n_threads_batch = options.threads > 0 ? options.threads : PhysicalCores();
  params.embeddings = true;
  params.pooling_type = *pooling_type;
  params.no_perf = true;
  SetRope(model->rope(), &params);
  ErrorLogCapture errors;
  ContextPtr context(llama_init_from_model(model->handle(), params));
  // Models that were made to generate text do not define a pooling type.
  if (context && llama_pooling_type(context.get()) == LLAMA_POOLING_TYPE_NONE) {
    params.pooling_type = LLAMA_POOLING_TYPE_MEAN;
    context.reset(llama_init_from_model(model->handle(), params));
  }
  if (!context)
    return InvalidArgument(fmt::format("--embeddings: {}", errors.text().substr(0, errors.text().find('\n'))));
  return std::unique_ptr<LlamaEmbedder>(new LlamaEmbedder(std::move(model), std::move(context)));
}

Result<std::vector<float>> LlamaEmbedder::Embed(std::span<const Token> tokens) {
  if (tokens.empty() || static_cast<int>(tokens.size()) > max_tokens()) {
    return InvalidArgument(fmt::format("{} tokens are not between 1 and {}", tokens.size(), max_tokens()));
  }
  const std::lock_guard lock(mutex_);
  llama_memory_clear(llama_get_memory(context_.get()), true);
  std::vector<Token> copy(tokens.begin(), tokens.end());
  const llama_batch batch = llama_batch_get_one(copy.data(), static_cast<int32_t>(copy.size()));
  if (const int32_t code = llama_decode(context_.get(), batch); code != 0) {
    return Internal(fmt::format("the engine could not embed {} tokens (code {})", tokens.size(), code));
  }
  const float* pooled = llama_get_embeddings_seq(context_.get(), 0);
  if (pooled == nullptr) return Unsupported("this model gives no embeddings");
  std::vector<float> vector(pooled, pooled + model_->EmbeddingSize());
  double squares = 0;
  for (float x : vector) squares += static_cast<double>(x) * x;
  const auto scale = static_cast<float>(squares > 0 ? 1 / std::sqrt(squares) : 0);
  for (float& x : vector) x *= scale;
  return vector;
}

}  // namespace outrider
