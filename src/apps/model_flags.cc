#include "apps/model_flags.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "api/reasoning_fields.h"

namespace outrider {
namespace {

constexpr int kMaxLayers = 1 << 16;

void AddLayersFlag(Flags& flags, const std::string& names, int& layers) {
  flags.Add(names, layers, "layers kept on the devices; -1, auto and all = all layers")->check(CLI::Range(-1, 1 << 20));
  for (const char* all : {"auto", "all", "-2"}) flags.SameAsDefault(all);
}

// Mixtures of experts whose weights are partly in main memory.
void AddExpertFlags(Flags& flags, const std::string& all, const std::string& some, ModelOptions& model) {
  flags.Switch(all, model.cpu_moe, "mixtures of experts: keep the weights of all experts in main memory");
  flags.Add(some, model.n_cpu_moe, "the same for so many layers, from the first")->check(CLI::Range(0, kMaxLayers));
}

struct CpuFlagNames {
  const char *mask, *range, *strict, *priority, *poll;
};

void AddCpuFlags(Flags& flags, const std::string& what_for, const CpuFlagNames& names, CpuOptions& cpu) {
  flags.Add(names.mask, cpu.mask, "CPUs " + what_for + ", as a hexadecimal mask; default: any");
  flags.Add(names.range, cpu.range, "CPUs " + what_for + ", as a range FIRST-LAST; added to the mask");
  flags.Add(names.strict, cpu.strict, "1 = each thread stays on one CPU")->check(CLI::Range(0, 1))->default_str("");
  flags
      .Add(names.priority, cpu.priority,
           "priority " + what_for + ": -1 = low, 0 = normal, 1 to 3 = higher, for which rights are needed")
      ->check(CLI::Range(-1, 3))
      ->default_str("");
  flags.Add(names.poll, cpu.poll, "0 to 100: how long idle threads look for work before they sleep")
      ->check(CLI::Range(0, 100))
      ->default_str("");
}

void AddRopeFlags(Flags& flags, RopeOptions& rope) {
  flags.Add("--rope-scaling", rope.scaling, "how positions are scaled: none, linear, yarn; default: as the file says");
  flags.Add("--rope-scale", rope.scale, "factor by which the context is stretched")->check(CLI::NonNegativeNumber);
  flags.Add("--rope-freq-base", rope.freq_base, "base frequency of positions; 0 = as the file says")
      ->check(CLI::NonNegativeNumber);
  flags.Add("--rope-freq-scale", rope.freq_scale, "1 / --rope-scale; 0 = as the file says")
      ->check(CLI::NonNegativeNumber);
  flags.Add("--yarn-orig-ctx", rope.yarn_orig_ctx, "YaRN: context the model was trained for; 0 = as the file says")
      ->check(CLI::NonNegativeNumber);
  flags.Add("--yarn-ext-factor", rope.yarn_ext_factor, "YaRN: mix of extrapolation; -1 = the usual");
  flags.Add("--yarn-attn-factor", rope.yarn_attn_factor, "YaRN: scale of attention; -1 = the usual");
  flags.Add("--yarn-beta-slow", rope.yarn_beta_slow, "YaRN: low end of the mix; -1 = the usual");
  flags.Add("--yarn-beta-fast", rope.yarn_beta_fast, "YaRN: high end of the mix; -1 = the usual");
}

void AddChatFlags(Flags& flags, ServeOptions& o) {
  flags.Add("--chat-template", o.chat.source, "Jinja chat template that replaces the model's");
  flags.Add("--chat-template-file", o.chat.source_file, "the same from a file");
  flags.Add(
      "--chat-template-kwargs", o.chat.arguments,
      "JSON object with variables of the template; a request's chat_template_kwargs replace those of the same name");
  flags.Add("-rea,--reasoning", o.chat.reasoning,
            "whether models think before they answer, where the template can: on, off, auto");
  flags.Add("--reasoning-effort", o.chat.reasoning_effort,
            "the template's variable reasoning_effort, such as low or high");
  flags.SameAsDefault("default");
  flags
      .Add(
          "--reasoning-format", o.chat.answer.format,
          "where reasoning goes: deepseek = to reasoning_content; none = it stays in the content; deepseek-legacy = it "
          "stays there in streams only; auto = deepseek")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kReasoningFormats), std::end(kReasoningFormats))));
  flags
      .Add("--reasoning-budget", o.chat.answer.budget,
           "tokens that a model may think where the request does not say; 0 = none, -1 = no limit")
      ->check(CLI::Range(-1, 1 << 30));
  flags.Add("--reasoning-budget-message", o.chat.answer.budget_message,
            "text that ends the thinking when its budget is used up");
  flags.OnOff(
      "--reasoning-preserve", "--no-reasoning-preserve", o.chat.preserve_reasoning,
      "the template's variable preserve_reasoning: earlier reasoning stays in the prompt, where the template can");
}

}  // namespace

void AddMediaFlags(Flags& flags, MediaOptions& media) {
  flags.Add("-mm,--mmproj", media.path, "GGUF file of the projector by which the model reads pictures");
  flags.OnOff("--mmproj-offload", "--no-mmproj-offload", media.offload, "compute pictures on the model's device");
  flags
      .Add("--image-min-tokens", media.min_tokens,
           "least tokens of a picture, for models that read pictures of different sizes; -1 = as the projector says")
      ->check(CLI::IsMember({-1}) | CLI::PositiveNumber);
  flags.Add("--image-max-tokens", media.max_tokens, "most tokens of a picture, likewise")
      ->check(CLI::IsMember({-1}) | CLI::PositiveNumber);
}

void AddModelFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Model");
  flags.Add("-m,--model", o.model.path, "GGUF file to serve; of a split model, the first part");
  flags
      .Add("-a,--alias", o.aliases,
           "names of the model, comma-separated; answers carry the first one; default: the file's name")
      ->delimiter(',');
  AddAdapterFlags(flags, o.adapters);
  AddLayersFlag(flags, "-ngl,--gpu-layers,--n-gpu-layers", o.model.gpu_layers);
  flags.Add("-dev,--device", o.model.devices, "devices to use, comma-separated; none = CPU only")->delimiter(',');
  flags
      .Add("-ot,--override-tensor", o.model.tensor_overrides,
           "PATTERN=BUFFER: where tensors whose name matches are kept")
      ->delimiter(',');
  AddExpertFlags(flags, "-cmoe,--cpu-moe", "-ncmoe,--n-cpu-moe", o.model);
  flags
      .Add("-ncffn,--n-cpu-ffn", o.model.n_cpu_ffn,
           "layers, from the first, whose dense feed-forward weights are kept in main memory")
      ->check(CLI::Range(0, kMaxLayers));
  flags
      .Add("--override-kv", o.model.kv_overrides,
           "KEY=TYPE:VALUE: metadata that replace the file's; types int, float, bool, str")
      ->delimiter(',');
  flags.Add("-sm,--split-mode", o.model.split_mode, "how several devices share the model: none, layer, row, tensor");
  flags.Add("-ts,--tensor-split", o.model.tensor_split, "share of each device, such as 3,1")->delimiter(',');
  flags.Add("-mg,--main-gpu", o.model.main_gpu, "device for everything with --split-mode none")
      ->check(CLI::Range(0, 4096));
  flags.Add("--rpc", o.model.rpc_servers, "host:port of llama.cpp rpc-servers that take part of the model")
      ->delimiter(',');
  flags.OnOff("--mmap", "--no-mmap", o.model.mmap, "map the file instead of reading it into memory");
  flags.Switch("--mlock", o.model.mlock, "keep the weights from being swapped out");
  flags.Add("-lm,--load-mode", o.model.load_mode,
            "auto, none, mmap, mlock, mmap+mlock, dio: how the file is read, instead of --mmap and --mlock");
  flags.Add("-lzm,--lazy-mode", o.model.lazy_mode, "read rows of large embeddings when they are needed: on, auto, off");
  flags.Switch("--check-tensors", o.model.check_tensors, "look for weights that are not numbers while loading");
  flags.OnOff("--repack", "-nr,--no-repack", o.model.repack, "let weights be reordered for this CPU");
  flags.Switch("--no-host", o.model.no_host, "keep weights out of memory that devices can read directly");
  const std::map<std::string, Kernels> kernels = {
      {"auto", Kernels::kAuto}, {"ggml", Kernels::kGgml}, {"outrider", Kernels::kOutrider}};
  flags
      .Add(
          "--kernels", o.model.kernels,
          "kernels for matrix products and attention: ggml, outrider (rows treated alike; a step of several rows costs "
          "little more than one), auto = the faster ones of this CPU, and ggml on a GPU")
      ->transform(CLI::CheckedTransformer(kernels))
      ->default_str("auto");
  flags.Add("--numa", o.numa, "distribute, isolate or numactl: spread threads over NUMA nodes");
  AddMediaFlags(flags, o.media);
  AddRopeFlags(flags, o.model.rope);
  AddChatFlags(flags, o);
}

void AddContextFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Context and computing");
  flags
      .Add(
          "-c,--ctx-size", o.context.context_tokens,
          "context in tokens: of all requests together with --parallel, else of each; 0 = up to 4096 for each, or what "
          "the model was trained for if that is less")
      ->check(CLI::NonNegativeNumber);
  o.context.n_sequences = ContextOptions::kAuto;
  flags
      .Add("-np,--parallel", o.context.n_sequences,
           "requests decoded side by side, each with an equal share of the context; -1 = up to 4, each with all of it, "
           "as far as an eighth of the memory allows")
      ->check(CLI::IsMember({-1}) | CLI::PositiveNumber);
  flags.Add("-b,--batch-size", o.context.batch, "maximum rows of one step")->check(CLI::PositiveNumber);
  flags.Add("-ub,--ubatch-size", o.context.micro_batch, "rows the backend computes at once")
      ->check(CLI::PositiveNumber);
  flags.Add("-t,--threads", o.context.threads, "threads while generating; 0 = one per physical core")
      ->check(CLI::Range(0, 4096));
  flags.SameAsDefault("-1");
  flags.Add("-tb,--threads-batch", o.context.threads_batch, "threads for prompts; 0 = as --threads")
      ->check(CLI::Range(0, 4096));
  flags.SameAsDefault("-1");
  const std::map<std::string, FlashAttention> attention = {
      {"auto", FlashAttention::kAuto},  {"-1", FlashAttention::kAuto},      {"on", FlashAttention::kOn},
      {"enabled", FlashAttention::kOn}, {"true", FlashAttention::kOn},      {"1", FlashAttention::kOn},
      {"off", FlashAttention::kOff},    {"disabled", FlashAttention::kOff}, {"false", FlashAttention::kOff},
      {"0", FlashAttention::kOff}};
  flags.Add("-fa,--flash-attn", o.context.flash_attention, "flash attention: on, off, auto")
      ->transform(CLI::CheckedTransformer(attention))
      ->default_str("auto");
  flags.ValueIfNone("on");  // as it was in llama.cpp once
  flags.Add("-ctk,--cache-type-k", o.context.cache_type_k,
            "type of the K cache: f16, bf16, q8_0, …; default: f16; bf16 with ggml's kernels, unless --exact off");
  flags.Add("-ctv,--cache-type-v", o.context.cache_type_v,
            "type of the V cache: f16, bf16, q8_0, …; default: f16; bf16 with ggml's kernels, unless --exact off");
  flags
      .Add(
          "--snapshot-memory", o.context.snapshot_mib,
          "recurrent models: MiB for earlier states, so that prompts are not computed again and rejected drafts can be "
          "rolled back")
      ->check(CLI::Range(0, 1 << 20));
  flags.OnOff("-kvo,--kv-offload", "-nkvo,--no-kv-offload", o.context.kv_offload,
              "keep the KV cache on the device of its layer, not in main memory");
  flags.OnOff("--op-offload", "--no-op-offload", o.context.op_offload,
              "with --exact off: wide products of weights in main memory may be computed on a device");
  AddCpuFlags(flags, "for the threads that generate",
              {"-C,--cpu-mask", "-Cr,--cpu-range", "--cpu-strict", "--prio", "--poll"}, o.context.cpu);
  AddCpuFlags(flags, "for prompts",
              {"-Cb,--cpu-mask-batch", "-Crb,--cpu-range-batch", "--cpu-strict-batch", "--prio-batch", "--poll-batch"},
              o.context.cpu_batch);
  const std::map<std::string, Exactness> exactness = {
      {"auto", Exactness::kAuto}, {"pad", Exactness::kPad}, {"off", Exactness::kOff}};
  flags
      .Add(
          "--exact", o.context.exactness,
          "auto = settings under which the same request gives the same text; pad = also one shape for all steps, where "
          "settings do not help (outrider check finds out); off = the fastest settings")
      ->transform(CLI::CheckedTransformer(exactness))
      ->default_str("auto");
  flags.Switch("--embeddings,--embedding", o.embeddings,
               "also serve /v1/embeddings (takes memory for a second context)");
  flags.Add(
      "--pooling", o.pooling,
      "how embeddings are pooled: mean, cls, last; none = one for each token, at /embeddings; default: the model's, "
      "else mean");
  flags.Switch("--reranking,--rerank", o.reranking,
               "serve /v1/rerank with a model that ranks documents (takes memory for a second context)");
  flags.Switch("--spm-infill", o.suffix_first, "/infill: the suffix comes before the prefix, as some models want it");
}

void AddSpeculationFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Speculation");
  SpeculationSettings& s = o.speculation;
  flags.Add("--spec,--spec-type", s.drafters,
            "drafter NAME[:key=value,…], may be repeated; auto = suffix and n-grams, and the draft model or head if "
            "there is one; none = no speculation");
  flags.Add("--draft-max,--spec-draft-n-max,--draft-n,--draft", s.speculator.n_max, "maximum draft tokens per step")
      ->check(CLI::Range(0, 1024));
  flags.Add("--draft-min,--spec-draft-n-min,--draft-n-min", s.speculator.n_min, "shorter drafts are dropped")
      ->check(CLI::Range(0, 1024));
  flags
      .Add("--draft-p-min,--spec-draft-p-min", s.speculator.p_min,
           "a draft ends where its drafter is less sure than this")
      ->check(CLI::Range(0.0, 1.0));
  const std::map<std::string, VerifyMode> modes = {{"match", VerifyMode::kMatch}, {"reject", VerifyMode::kReject}};
  flags
      .Add("--verify", o.scheduler.verify,
           "match = the text of plain decoding; reject = rejection sampling, which accepts more at high temperatures "
           "and keeps the distribution but not the text")
      ->transform(CLI::CheckedTransformer(modes))
      ->default_str("match");
  flags
      .Add("--replica", o.replica,
           "devices for another copy of the model, of the same kind as the target's (none = CPU). While the model "
           "verifies the beginning of a remote draft, the copy verifies its next tokens")
      ->delimiter(',');
  flags.Switch("--spec-forget", s.remember, "drafters learn nothing from earlier requests", false);
  flags
      .Add("--min-pace", s.speculator.min_pace_beside_others,
           "with several requests at a time: smallest share of its plain speed that each request keeps; 0 = no limit")
      ->check(CLI::Range(0.0, 1.0));
  flags.Switch("--spec-always", s.speculator.always,
               "verify every draft, even where that is slower (to measure a drafter)");
  flags.Add("-lcs,--lookup-cache-static", s.lookup_cache_static,
            "n-gram statistics to draft from (a file of llama.cpp's)");
  flags.Add("-lcd,--lookup-cache-dynamic", s.lookup_cache_dynamic,
            "n-gram statistics to draft from; what is learned is written back at exit");
  for (const char* drafter : {"ngram-simple", "ngram-map-k", "ngram-map-k4v"}) {
    auto& parameters = s.parameters[drafter];
    flags.Add(fmt::format("--spec-{}-size-n", drafter), parameters["size_n"], "length of the n-gram that is looked up");
    flags.Add(fmt::format("--spec-{}-size-m", drafter), parameters["size_m"], "length of its drafts");
    flags.Add(fmt::format("--spec-{}-min-hits", drafter), parameters["min_hits"], "how often it must have occurred");
  }
  flags.Add("--spec-ngram-mod-n-match", s.parameters["ngram-mod"]["n_match"], "tokens that must agree");
  flags.Add("--spec-ngram-mod-n-min", s.parameters["ngram-mod"]["n_min"], "shorter drafts of it are dropped");
  flags.Add("--spec-ngram-mod-n-max", s.parameters["ngram-mod"]["n_max"], "maximum length of its drafts");
  flags.Switch("--calibrate", s.calibrate,
               "measure again what a step of each width costs, instead of using the last measurement");
}

void AddDraftModelFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Draft model");
  SpeculationSettings& s = o.speculation;
  flags.Add("-md,--model-draft,--spec-draft-model", s.draft_model.path,
            "GGUF file that drafts: a small model, or an EAGLE-3 head of the model");
  flags
      .Add("-cd,--ctx-size-draft", s.draft_context.context_tokens,
           "its context in tokens over all sequences; 0 = as the target's")
      ->check(CLI::NonNegativeNumber);
  AddLayersFlag(flags, "-ngld,--gpu-layers-draft,--n-gpu-layers-draft,--spec-draft-ngl", s.draft_model.gpu_layers);
  flags.Add("-devd,--device-draft,--spec-draft-device", s.draft_model.devices, "devices for it; none = CPU only")
      ->delimiter(',');
  flags
      .Add("-otd,--override-tensor-draft,--spec-draft-override-tensor", s.draft_model.tensor_overrides,
           "pattern=buffer type, as -ot")
      ->delimiter(',');
  AddExpertFlags(flags, "-cmoed,--cpu-moe-draft,--spec-draft-cpu-moe",
                 "-ncmoed,--n-cpu-moe-draft,--spec-draft-n-cpu-moe,--spec-draft-ncmoe", s.draft_model);
  flags
      .Add("-td,--threads-draft,--spec-draft-threads", s.draft_context.threads,
           "threads while drafting; 0 = as --threads")
      ->check(CLI::Range(0, 4096));
  flags.SameAsDefault("-1");
  flags
      .Add("-tbd,--threads-batch-draft,--spec-draft-threads-batch", s.draft_context.threads_batch,
           "threads while reading a prompt; 0 = as --threads-draft")
      ->check(CLI::Range(0, 4096));
  flags.SameAsDefault("-1");
  flags.Add("-ctkd,--cache-type-k-draft,--spec-draft-type-k", s.draft_context.cache_type_k,
            "type of its K cache; default f16");
  flags.Add("-ctvd,--cache-type-v-draft,--spec-draft-type-v", s.draft_context.cache_type_v,
            "type of its V cache; default f16");
  AddCpuFlags(flags, "while drafting",
              {"-Cd,--cpu-mask-draft,--spec-draft-cpu-mask", "-Crd,--cpu-range-draft,--spec-draft-cpu-range",
               "--cpu-strict-draft,--spec-draft-cpu-strict", "--prio-draft,--spec-draft-prio",
               "--poll-draft,--spec-draft-poll"},
              s.draft_context.cpu);
  AddCpuFlags(flags, "for the draft model's prompts",
              {"-Cbd,--cpu-mask-batch-draft,--spec-draft-cpu-mask-batch",
               "-Crbd,--cpu-range-batch-draft,--spec-draft-cpu-range-batch",
               "--cpu-strict-batch-draft,--spec-draft-cpu-strict-batch", "--prio-batch-draft,--spec-draft-prio-batch",
               "--poll-batch-draft,--spec-draft-poll-batch"},
              s.draft_context.cpu_batch);
}

}  // namespace outrider
