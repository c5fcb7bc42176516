#include "engine/llama/llama_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/llama/backend.h"
#include "engine/llama/canonical.h"
#include "engine/llama/load_params.h"

namespace outrider {
namespace {

constexpr int kDefaultSequenceContext = 4096;
constexpr int kOutputsPerSequence = 32;
constexpr Pos kMemoryBlock = 256;     // libllama pads what attention reads to a multiple of this
constexpr int kMaxAutoSequences = 4;  // as many as llama-server has

// Bytes of K and V for one token, for models that keep both for every layer; those that keep less need less.
double BytesPerToken(const LlamaModel& model, const ContextSettings& settings) {
  const llama_model* handle = model.handle();
  const double head = static_cast<double>(model.EmbeddingSize()) / std::max(1, llama_model_n_head(handle));
  const double values = head * llama_model_n_head_kv(handle) * llama_model_n_layer(handle);
  const auto bytes = [](ggml_type type) {
    return static_cast<double>(ggml_type_size(type)) / static_cast<double>(ggml_blck_size(type));
  };
  return values * (bytes(settings.type_k) + bytes(settings.type_v));
}

// How many sequences can have a context of this length each. At least one, as asked for; the others must not take more
// than an eighth of the memory together.
int SequencesThatFit(int tokens, const LlamaModel& model, const ContextSettings& settings) {
  const double each = tokens * BytesPerToken(model, settings);
  const double room = static_cast<double>(TotalMemory()) / 8;
  return each <= 0 ? kMaxAutoSequences : static_cast<int>(std::clamp(1 + room / each, 1.0, double{kMaxAutoSequences}));
}

struct ContextSize {
  int sequences;
  int tokens;  // of all of them
};

// Whether the options say that the context is not the one the model was trained for.
bool StretchesContext(const RopeOptions& rope) {
  return rope.scale > 0 || rope.freq_scale > 0 || rope.freq_base > 0 || rope.scaling == "yarn" ||
         rope.scaling == "linear";
}

Result<ContextSize> ChooseContextSize(const ContextOptions& options, const LlamaModel& model,
                                      const ContextSettings& settings) {
  const bool choose = options.n_sequences == ContextOptions::kAuto;
  const auto possible = static_cast<int>(llama_max_parallel_sequences());
  if (!choose && (options.n_sequences < 1 || options.n_sequences > possible)) {
    return InvalidArgument(fmt::format("--parallel {} is not between 1 and {}", options.n_sequences, possible));
  }
  const Pos trained = StretchesContext(model.rope()) ? 0 : model.TrainedContext();
  if (options.context_tokens == 0) {
    const int sequences = choose ? kMaxAutoSequences : options.n_sequences;
    const int each = std::min(trained > 0 ? trained : kDefaultSequenceContext, kDefaultSequenceContext);
    return ContextSize{sequences, each * sequences};
  }
  if (choose) {
    const int each = trained > 0 ? std::min(options.context_tokens, trained) : options.context_tokens;
    const int sequences = SequencesThatFit(each, model, settings);
    return ContextSize{sequences, each * sequences};
  }
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
  return ContextSize{options.n_sequences, options.context_tokens};
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
  auto size = ChooseContextSize(options, model, settings);
  if (!size.ok()) return size.status();
  if (options.batch < 1 || options.micro_batch < 1)
    return InvalidArgument("--batch-size and --ubatch-size must be at least 1");
  const int batch = std::max(options.batch, size->sequences);
  const int wanted_outputs = options.max_outputs > 0 ? options.max_outputs : size->sequences * kOutputsPerSequence;

  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(size->tokens);
  params.n_batch = static_cast<uint32_t>(batch);
  params.n_ubatch = static_cast<uint32_t>(std::min(options.micro_batch, batch));
  params.n_seq_max = static_cast<uint32_t>(size->sequences);
  params.n_outputs_max = static_cast<uint32_t>(std::clamp(wanted_outputs, size->sequences, batch));
  // A device that has all layers leaves the CPU a look-up and the launching of kernels, which more threads only
  // disturb.
  const int threads = model.placement() == Placement::kDevice ? 1 : PhysicalCores();
  params.n_threads = options.threads > 0 ? options.threads : threads;
  params.n_threads_batch = options.threads_batch > 0 ? options.threads_batch : params.n_threads;
  params.flash_attn_type = settings.flash_attention;
  params.type_k = settings.type_k;
  params.type_v = settings.type_v;
  params.kv_unified = settings.unified_memory;
  params.offload_kqv = options.kv_offload;
  params.no_perf = true;
  // Otherwise wide batches would be computed on a device, and narrow ones on the CPU.
  params.op_offload = options.op_offload && options.exactness == Exactness::kOff;
  SetRope(model.rope(), &params);
  return params;
}

}  // namespace

void SetRope(const RopeOptions& rope, llama_context_params* params) {
  // A name that does not exist was refused when the model was loaded.
  if (const auto scaling = ParseRopeScaling(rope.scaling); scaling.ok()) params->rope_scaling_type = *scaling;
  params->rope_freq_base = rope.freq_base;
  params->rope_freq_scale = rope.scale > 0 ? 1.0f / rope.scale : rope.freq_scale;
  params->yarn_orig_ctx = static_cast<uint32_t>(rope.yarn_orig_ctx);
  params->yarn_ext_factor = rope.yarn_ext_factor;
  params->yarn_attn_factor = rope.yarn_attn_factor;
  params->yarn_beta_slow = rope.yarn_beta_slow;
  params->yarn_beta_fast = rope.yarn_beta_fast;
}

namespace {

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
  info.n_adapters = static_cast<int>(model.adapters().size());
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
// Those that give the state after the last layer for every row (res->t_h_nextn).
constexpr std::array<std::string_view, 7> kLastStateArchitectures = {"qwen3next", "qwen35",     "qwen35moe", "gpt-oss",
                                                                     "gemma4",    "nemotron_h", "hy_v3"};

}  // namespace

Result<LlamaContext> MakeLlamaContext(LlamaModel& model, const ContextOptions& options) {
  const bool memory_elsewhere = model.on_device() && !options.kv_offload;
  auto settings = ChooseContextSettings(options, memory_elsewhere ? Attention::kGgml : model.attention());
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
  if (layers.empty()) return Unsupported("no layer was named whose hidden states are wanted");
  const auto has = [&](const auto& known) {
    return std::find(known.begin(), known.end(), model.Architecture()) != known.end();
  };
  const int n_layers = model.LayerCount();
  for (const int layer : layers) {
    if (layer < 0 || layer > n_layers)
      return Unsupported(fmt::format("there is no layer {}: the model has {} of them", layer, n_layers));
    if (layer == n_layers ? !has(kLastStateArchitectures) : !has(kHiddenArchitectures)) {
      return Unsupported(fmt::format("libllama does not give the hidden states of {} models", model.Architecture()));
    }
  }
  return {};
}

}  // namespace outrider
