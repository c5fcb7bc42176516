#include "engine/llama/llama_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/llama/backend.h"
#include "engine/llama/canonical.h"

namespace outrider {
namespace {

constexpr int kDefaultSequenceContext = 4096;
constexpr int kOutputsPerSequence = 32;
constexpr Pos kMemoryBlock = 256;  // libllama pads what attention reads to a multiple of this

Result<int> ContextTokens(const ContextOptions& options, const LlamaModel& model) {
  if (options.n_sequences < 1 || options.n_sequences > static_cast<int>(llama_max_parallel_sequences())) {
    return InvalidArgument(
        fmt::format("--parallel {} is not between 1 and {}", options.n_sequences, llama_max_parallel_sequences()));
  }
  const Pos trained = model.TrainedContext();
  if (options.context_tokens == 0) return std::min(trained, kDefaultSequenceContext) * options.n_sequences;
  const int per_sequence = options.context_tokens / options.n_sequences;
  if (per_sequence < 16) {
    return InvalidArgument(
        fmt::format("--ctx-size {} leaves {} tokens for each of {} sequences; give more, or lower --parallel",
                    options.context_tokens, per_sequence, options.n_sequences));
  }
  if (trained > 0 && per_sequence > trained) {
    return InvalidArgument(
        fmt::format("--ctx-size {} gives each of {} sequences {} tokens, but the model was trained for {}: use at "
                    "most --ctx-size {}",
                    options.context_tokens, options.n_sequences, per_sequence, trained,
                    static_cast<int64_t>(trained) * options.n_sequences));
  }
  return options.context_tokens;
}

Status ExplainContextFailure(int context_tokens, const std::string& errors) {
  if (errors.find("alloc") != std::string::npos) {
    return InvalidArgument(
        fmt::format("not enough memory for a context of {} tokens: lower --ctx-size or --parallel, or use a "
                    "quantised cache (-ctk q8_0 -ctv q8_0)",
                    context_tokens));
  }
  return InvalidArgument(fmt::format("the context cannot be created: {}",
                                     errors.empty() ? "no reason was given" : errors.substr(0, errors.find('\n'))));
}

Result<llama_context_params> ContextParameters(const LlamaModel& model, const ContextOptions& options,
                                               const ContextSettings& settings) {
  auto context_tokens = ContextTokens(options, model);
  if (!context_tokens.ok()) return context_tokens.status();
  if (options.batch < 1 || options.micro_batch < 1)
    return InvalidArgument("--batch-size and --ubatch-size must be at least 1");
  const int batch = std::max(options.batch, options.n_sequences);
  const int wanted_outputs = options.max_outputs > 0 ? options.max_outputs : options.n_sequences * kOutputsPerSequence;

  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(*context_tokens);
  params.n_batch = static_cast<uint32_t>(batch);
  params.n_ubatch = static_cast<uint32_t>(std::min(options.micro_batch, batch));
  params.n_seq_max = static_cast<uint32_t>(options.n_sequences);
  params.n_outputs_max = static_cast<uint32_t>(std::clamp(wanted_outputs, options.n_sequences, batch));
  params.n_threads = options.threads > 0 ? options.threads : PhysicalCores();
  params.n_threads_batch = options.threads_batch > 0 ? options.threads_batch : params.n_threads;
  params.flash_attn_type = settings.flash_attention;
  params.type_k = settings.type_k;
  params.type_v = settings.type_v;
  params.kv_unified = settings.unified_memory;
  params.offload_kqv = options.kv_offload;
  params.no_perf = true;
  if (options.exactness != Exactness::kOff)
    params.op_offload = false;  // otherwise wide batches would be computed on a device
  return params;
}

// Why logits may depend on the batch's shape; "" if they do not.
std::string ExactnessCaveat(const LlamaModel& model, const ContextSettings& settings, const RollbackFinding& rollback) {
  if (!settings.caveat.empty()) return settings.caveat;
  if (!model.exactness_caveat().empty()) return model.exactness_caveat();
  return rollback.rows_independent ? ""
                                   : "the layers of this model compute a row otherwise when others are decoded with it";
}

EngineInfo DescribeEngine(const LlamaModel& model, const llama_context* context, const llama_context_params& params) {
  EngineInfo info;
  info.n_vocab = model.tokenizer().vocabulary_size();
  info.n_sequences = static_cast<int>(llama_n_seq_max(context));
  info.sequence_length = static_cast<Pos>(llama_n_ctx_seq(context));
  info.max_batch = static_cast<int>(llama_n_batch(context));
  info.micro_batch = static_cast<int>(llama_n_ubatch(context));
  info.max_outputs = std::min(static_cast<int>(params.n_outputs_max), info.max_batch);
  info.memory_block = kMemoryBlock;
  return info;
}

// Architectures whose graphs name the inputs of their layers (res->t_layer_inp in llama.cpp's src/models).
constexpr std::array<std::string_view, 12> kHiddenArchitectures = {"llama",  "qwen3",     "qwen3moe",   "qwen3next",
                                                                   "qwen35", "qwen35moe", "gemma4",     "gpt-oss",
                                                                   "lfm2",   "lfm2moe",   "minimax-m2", "nemotron_h"};

}  // namespace

Result<LlamaContext> MakeLlamaContext(LlamaModel& model, const ContextOptions& options) {
  auto settings = ChooseContextSettings(options, model.AttendsWithOurKernels());
  if (!settings.ok()) return settings.status();
  auto params = ContextParameters(model, options, *settings);
  if (!params.ok()) return params.status();

  LlamaContext made;
  made.threads = params->n_threads;
  made.threads_batch = params->n_threads_batch;
  made.shared_memory = settings->unified_memory;
  made.snapshot_bytes = static_cast<size_t>(std::max(options.snapshot_mib, 0)) << 20;
  ErrorLogCapture errors;
  made.rollback = ProbeRollback(model.handle(), *params, options.device_snapshots ? made.snapshot_bytes : 0);
  params->n_rs_seq = static_cast<uint32_t>(made.rollback.device_snapshots);
  made.context.reset(llama_init_from_model(model.handle(), *params));
  if (!made.context) return ExplainContextFailure(static_cast<int>(params->n_ctx), errors.text());

  made.info = DescribeEngine(model, made.context.get(), *params);
  made.info.rollback = made.rollback.way;
  made.info.device_snapshots = made.rollback.device_snapshots;
  made.info.remembers = KeepsStates(made.rollback.way) && made.snapshot_bytes > 0;
  made.info.exactness = ExactnessCaveat(model, *settings, made.rollback);
  return made;
}

Status CheckHiddenLayers(const LlamaModel& model, std::span<const int> layers) {
  std::array<char, 64> architecture{};
  llama_model_meta_val_str(model.handle(), "general.architecture", architecture.data(), architecture.size());
  const auto& known = kHiddenArchitectures;
  if (std::find(known.begin(), known.end(), std::string_view(architecture.data())) == known.end()) {
    return Unsupported(fmt::format("libllama does not give the hidden states of {} models", architecture.data()));
  }
  const int n_layers = llama_model_n_layer(model.handle());
  for (const int layer : layers) {
    if (layer < 0 || layer >= n_layers)
      return Unsupported(fmt::format("there is no layer {}: the model has {} of them", layer, n_layers));
  }
  return layers.empty() ? Unsupported("no layer was named whose hidden states are wanted") : Status();
}

}  // namespace outrider
