// Whether kernels cost quality: the perplexity of a text with ggml's kernels, then with ours (and the KV types
// each has by default: bf16 and f16).
//
//   bench/kernel_perplexity MODEL.gguf TEXT.txt [TOKENS]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "engine/llama/llama_engine.h"

namespace {

using namespace outrider;

constexpr int kChunk = 512;

template <typename T>
T OrExit(Result<T> result) {
  if (result.ok()) return std::move(*result);
  fmt::print(stderr, "{}\n", result.status().message());
  std::exit(2);
}

// The sum of -log p of all tokens but the first.
double Surprise(LlamaEngine& engine, std::span<const Token> tokens) {
  engine.TruncateTo(0, 0);
  Batch batch;
  for (size_t i = 0; i < tokens.size(); ++i) batch.Add({tokens[i], static_cast<Pos>(i), 0, true});
  if (const Status status = engine.Decode(batch); !status.ok()) {
    fmt::print(stderr, "{}\n", status.message());
    std::exit(2);
  }
  double surprise = 0;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const auto logits = engine.Logits(static_cast<int>(i));
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float logit : logits) sum += std::exp(logit - largest);
    surprise += std::log(sum) + largest - logits[static_cast<size_t>(tokens[i + 1])];
  }
  return surprise;
}

struct Sum {
  double surprise = 0;
  size_t tokens = 0;
};

Sum Measure(const std::string& path, Kernels kernels, const std::string& text, size_t most) {
  ModelOptions options;
  options.path = path;
  options.kernels = kernels;
  options.gpu_layers = 0;
  const auto model = OrExit(LlamaModel::Load(options));
  fmt::print("kernels: {}\n", model->kernels());
  ContextOptions context;
  context.n_sequences = 1;
  context.context_tokens = context.max_outputs = kChunk;
  const auto engine = OrExit(LlamaEngine::Create(model, context));
  const std::vector<Token> tokens = model->tokenizer().Tokenize(text, false, SpecialTokens::kAsText);
  Sum sum;
  for (size_t at = 0; at + kChunk <= std::min(most, tokens.size()); at += kChunk) {
    sum.surprise += Surprise(*engine, std::span(tokens).subspan(at, kChunk));
    sum.tokens += kChunk - 1;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: kernel_perplexity MODEL.gguf TEXT.txt [TOKENS]\n");
    return 2;
  }
  const size_t most = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 20'480;
  std::ifstream file(argv[2]);
  std::stringstream text;
  text << file.rdbuf();
  const Sum ggml = Measure(argv[1], Kernels::kGgml, text.str(), most);
  const Sum ours = Measure(argv[1], Kernels::kOutrider, text.str(), most);
  if (ggml.tokens == 0) {
    fmt::print(stderr, "{} has fewer than {} tokens\n", argv[2], kChunk);
    return 2;
  }
  const auto perplexity = [](const Sum& sum) { return std::exp(sum.surprise / static_cast<double>(sum.tokens)); };
  fmt::print("{} tokens: perplexity {:.4f} with ggml's kernels, {:.4f} with ours: {:+.3f} %\n", ggml.tokens,
             perplexity(ggml), perplexity(ours), 100 * (perplexity(ours) / perplexity(ggml) - 1));
}
