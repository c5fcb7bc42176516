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
  if (name == "none") return LLAMA_POOLING_TYPE_NONE;
  if (name == "rank") return LLAMA_POOLING_TYPE_UNSPECIFIED;  // Create looks whether the model says so
  return InvalidArgument(fmt::format("--pooling '{}' is not one of mean, cls, last, none, rank", name));
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
  if (context && pooling == "rank" && llama_pooling_type(context.get()) != LLAMA_POOLING_TYPE_RANK) {
    return InvalidArgument("--reranking: this model was not made to rank documents");
  }
  // Models that were made to generate text do not define a pooling type.
  if (context && pooling.empty() && llama_pooling_type(context.get()) == LLAMA_POOLING_TYPE_NONE) {
    params.pooling_type = LLAMA_POOLING_TYPE_MEAN;
    context.reset(llama_init_from_model(model->handle(), params));
  }
  if (!context)
    return InvalidArgument(fmt::format("--embeddings: {}", errors.text().substr(0, errors.text().find('\n'))));
  return std::unique_ptr<LlamaEmbedder>(new LlamaEmbedder(std::move(model), std::move(context)));
}

EmbeddingKind LlamaEmbedder::kind() const {
  switch (llama_pooling_type(context_.get())) {
    case LLAMA_POOLING_TYPE_NONE:
      return EmbeddingKind::kTokens;
    case LLAMA_POOLING_TYPE_RANK:
      return EmbeddingKind::kRank;
    default:
      return EmbeddingKind::kText;
  }
}

Status LlamaEmbedder::Decode(std::span<const Token> tokens) {
  if (tokens.empty() || static_cast<int>(tokens.size()) > max_tokens()) {
    return InvalidArgument(fmt::format("{} tokens are not between 1 and {}", tokens.size(), max_tokens()));
  }
  llama_memory_clear(llama_get_memory(context_.get()), true);
  std::vector<Token> copy(tokens.begin(), tokens.end());
  const llama_batch batch = llama_batch_get_one(copy.data(), static_cast<int32_t>(copy.size()));
  if (const int32_t code = llama_decode(context_.get(), batch); code != 0) {
    return Internal(fmt::format("the engine could not embed {} tokens (code {})", tokens.size(), code));
  }
  return {};
}

Result<std::vector<float>> LlamaEmbedder::Embed(std::span<const Token> tokens) {
  const EmbeddingKind kind = this->kind();
  if (kind == EmbeddingKind::kTokens) return Unsupported("with --pooling none a text has no embedding of its own");
  const std::lock_guard lock(mutex_);
  if (Status status = Decode(tokens); !status.ok()) return status;
  const float* pooled = llama_get_embeddings_seq(context_.get(), 0);
  if (pooled == nullptr) return Unsupported("this model gives no embeddings");
  if (kind == EmbeddingKind::kRank)
    return std::vector<float>(pooled, pooled + std::max(1u, llama_model_n_cls_out(model_->handle())));
  std::vector<float> vector(pooled, pooled + model_->EmbeddingSize());
  double squares = 0;
  for (float x : vector) squares += static_cast<double>(x) * x;
  const auto scale = static_cast<float>(squares > 0 ? 1 / std::sqrt(squares) : 0);
  for (float& x : vector) x *= scale;
  return vector;
}

Result<std::vector<std::vector<float>>> LlamaEmbedder::EmbedEach(std::span<const Token> tokens) {
  if (kind() != EmbeddingKind::kTokens) return Embedder::EmbedEach(tokens);
  const std::lock_guard lock(mutex_);
  if (Status status = Decode(tokens); !status.ok()) return status;
  std::vector<std::vector<float>> vectors;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const float* values = llama_get_embeddings_ith(context_.get(), static_cast<int32_t>(i));
    if (values == nullptr) return Unsupported("this model gives no embeddings");
    vectors.emplace_back(values, values + model_->EmbeddingSize());
  }
  return vectors;
}

}  // namespace outrider
