#include "apps/serve_flags.h"

#include <map>

namespace outrider {
namespace {

void AddModelFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Model");
  flags.Add("-m,--model", o.model.path, "GGUF file to serve; of a split model, the first part");
  flags.Add("-a,--alias", o.alias, "model name in answers; default: the file's name");
  flags.Add("-ngl,--gpu-layers,--n-gpu-layers", o.model.gpu_layers, "layers kept on the devices; -1 = all that fit")
      ->check(CLI::Range(-1, 1 << 20));
  flags.Add("-dev,--device", o.model.devices, "devices to use, comma-separated; none = CPU only")->delimiter(',');
  flags
      .Add("-ot,--override-tensor", o.model.tensor_overrides,
           "PATTERN=BUFFER: where tensors whose name matches are kept")
      ->delimiter(',');
  flags.Add("-sm,--split-mode", o.model.split_mode, "how several devices share the model: none, layer, row");
  flags.Add("-ts,--tensor-split", o.model.tensor_split, "share of each device, such as 3,1")->delimiter(',');
  flags.Add("-mg,--main-gpu", o.model.main_gpu, "device for everything with --split-mode none")
      ->check(CLI::Range(0, 4096));
  flags.Add("--rpc", o.model.rpc_servers, "host:port of llama.cpp rpc-servers that take part of the model")
      ->delimiter(',');
  flags.Switch("--no-mmap", o.model.mmap, "read the file into memory instead of mapping it", false);
  flags.Switch("--mlock", o.model.mlock, "keep the weights from being swapped out");
  flags.Switch("-nr,--no-repack", o.model.repack, "keep the weights in the file's layout", false);
  const std::map<std::string, Kernels> kernels = {
      {"auto", Kernels::kAuto}, {"ggml", Kernels::kGgml}, {"outrider", Kernels::kOutrider}};
  flags
      .Add(
          "--kernels", o.model.kernels,
          "kernels for matrix products on the CPU: ggml, outrider (a step of several rows costs little more than one), "
          "auto = the faster ones on this machine")
      ->transform(CLI::CheckedTransformer(kernels))
      ->default_str("auto");
  flags.Add("--numa", o.numa, "distribute, isolate or numactl: spread threads over NUMA nodes");
  flags.Add("--chat-template", o.chat_template, "Jinja chat template that replaces the model's");
  flags.Add("--chat-template-file", o.chat_template_file, "the same from a file");
}

void AddContextFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Context and computing");
  flags
      .Add("-c,--ctx-size", o.context.context_tokens,
           "context in tokens over all sequences; 0 = up to 4096 for each, or what the model was trained for if that "
           "is less")
      ->check(CLI::NonNegativeNumber);
  flags
      .Add("-np,--parallel", o.context.n_sequences,
           "requests decoded side by side, each with an equal share of the context")
      ->check(CLI::PositiveNumber);
  flags.Add("-b,--batch-size", o.context.batch, "maximum rows of one step")->check(CLI::PositiveNumber);
  flags.Add("-ub,--ubatch-size", o.context.micro_batch, "rows the backend computes at once")
      ->check(CLI::PositiveNumber);
  flags.Add("-t,--threads", o.context.threads, "threads while generating; 0 = one per physical core")
      ->check(CLI::Range(0, 4096));
  flags.Add("-tb,--threads-batch", o.context.threads_batch, "threads for prompts; 0 = as --threads")
      ->check(CLI::Range(0, 4096));
  const std::map<std::string, FlashAttention> attention = {
      {"auto", FlashAttention::kAuto}, {"on", FlashAttention::kOn}, {"off", FlashAttention::kOff}};
  flags.Add("-fa,--flash-attn", o.context.flash_attention, "flash attention: on, off, auto")
      ->transform(CLI::CheckedTransformer(attention))
      ->default_str("auto");
  flags.Add("-ctk,--cache-type-k", o.context.cache_type_k,
            "type of the K cache: f16, bf16, q8_0, …; default: f16; bf16 with ggml's kernels, unless --exact off");
  flags.Add("-ctv,--cache-type-v", o.context.cache_type_v, "type of the V cache, likewise");
  flags
      .Add(
          "--snapshot-memory", o.context.snapshot_mib,
          "recurrent models: MiB for earlier states, so that prompts are not computed again and rejected drafts can be "
          "rolled back")
      ->check(CLI::Range(0, 1 << 20));
  flags.Switch("-nkvo,--no-kv-offload", o.context.kv_offload, "keep the KV cache in main memory", false);
  const std::map<std::string, Exactness> exactness = {
      {"auto", Exactness::kAuto}, {"pad", Exactness::kPad}, {"off", Exactness::kOff}};
  flags
      .Add(
          "--exact", o.context.exactness,
          "auto = settings under which the same request gives the same text; pad = also one shape for all steps, where "
          "settings do not help (outrider check finds out); off = the fastest settings")
      ->transform(CLI::CheckedTransformer(exactness))
      ->default_str("auto");
  flags.Switch("--embeddings", o.embeddings, "also serve /v1/embeddings (takes memory for a second context)");
  flags.Add("--pooling", o.pooling, "how embeddings are pooled: mean, cls, last; default: the model's, else mean");
}

void AddSpeculationFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Speculation: drafts that never change the text");
  SpeculationSettings& s = o.speculation;
  flags.Add("--spec,--spec-type", s.drafters,
            "drafter NAME[:key=value,…], may be repeated; auto = suffix and n-grams, and the draft model if there is "
            "one; none = no speculation");
  flags.Add("--draft-max,--spec-draft-n-max,--draft-n", s.policy.n_max, "maximum draft tokens per step")
      ->check(CLI::Range(0, 1024));
  flags.Add("--draft-min,--spec-draft-n-min,--draft-n-min", s.policy.n_min, "shorter drafts are dropped")
      ->check(CLI::Range(0, 1024));
  flags
      .Add("--draft-p-min,--spec-draft-p-min", s.policy.p_min, "a draft ends where its drafter is less sure than this")
      ->check(CLI::Range(0.0, 1.0));
  const std::map<std::string, VerifyMode> modes = {{"match", VerifyMode::kMatch}, {"reject", VerifyMode::kReject}};
  flags
      .Add("--verify", o.scheduler.verify,
           "match = the text of plain decoding; reject = rejection sampling, which accepts more at high temperatures "
           "and keeps the distribution but not the text")
      ->transform(CLI::CheckedTransformer(modes))
      ->default_str("match");
  flags
      .Add(
          "--replica", o.replica,
          "devices for another copy of the model, of the same kind as the target's (none = CPU), which verifies what a "
          "remote drafter says meanwhile")
      ->delimiter(',');
  flags.Switch("--spec-forget", s.remember, "drafters learn nothing from earlier requests", false);
  flags.Switch("--spec-always", s.policy.always,
               "verify every draft, even where that is slower (to measure a drafter)");
  flags.Add("-lcs,--lookup-cache-static", s.lookup_cache_static,
            "n-gram statistics to draft from (a file of llama.cpp's)");
  flags.Add("-lcd,--lookup-cache-dynamic", s.lookup_cache_dynamic,
            "likewise; what is learned is added to the file at the end");
  flags.Switch("--calibrate", s.calibrate,
               "measure again what a step of each width costs, instead of using the last measurement");
}

void AddDraftModelFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Draft model");
  SpeculationSettings& s = o.speculation;
  flags.Add("-md,--model-draft,--spec-draft-model", s.draft_model.path, "GGUF file of a small model that drafts");
  flags
      .Add("-cd,--ctx-size-draft", s.draft_context.context_tokens,
           "its context in tokens over all sequences; 0 = as the target's")
      ->check(CLI::NonNegativeNumber);
  flags.Add("-ngld,--gpu-layers-draft,--n-gpu-layers-draft,--spec-draft-ngl", s.draft_model.gpu_layers,
            "layers on the GPU; -1 = all");
  flags.Add("-devd,--device-draft,--spec-draft-device", s.draft_model.devices, "devices for it; none = CPU only")
      ->delimiter(',');
  flags
      .Add("-otd,--override-tensor-draft,--spec-draft-override-tensor", s.draft_model.tensor_overrides,
           "pattern=buffer type, as -ot")
      ->delimiter(',');
  flags
      .Add("-td,--threads-draft,--spec-draft-threads", s.draft_context.threads,
           "threads while drafting; 0 = as --threads")
      ->check(CLI::Range(0, 4096));
  flags
      .Add("-tbd,--threads-batch-draft,--spec-draft-threads-batch", s.draft_context.threads_batch,
           "threads while reading a prompt; 0 = as --threads-draft")
      ->check(CLI::Range(0, 4096));
  flags.Add("-ctkd,--cache-type-k-draft,--spec-draft-type-k", s.draft_context.cache_type_k,
            "type of its K cache; default f16");
  flags.Add("-ctvd,--cache-type-v-draft,--spec-draft-type-v", s.draft_context.cache_type_v,
            "type of its V cache, likewise");
}

void AddSchedulerFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Requests");
  flags.Add("--queue", o.scheduler.max_queue, "requests that may wait for a slot; one more gets 429")
      ->check(CLI::Range(0, 1000000));
  flags.Add("--prompt-slice", o.scheduler.prompt_slice, "prompt tokens decoded per step while others are generating")
      ->check(CLI::Range(1, 1 << 20));
  flags.Add("--request-seconds", o.request_seconds, "maximum time of a request, waiting included; 0 = no limit")
      ->check(CLI::NonNegativeNumber);
  flags.Add("--drain-seconds", o.drain_seconds, "how long running requests may go on after SIGTERM")
      ->check(CLI::NonNegativeNumber);
  flags.Add("-n,--predict,--n-predict", o.max_tokens, "maximum tokens of an answer; -1 = as the context allows")
      ->check(CLI::Range(-1, 1 << 30));
}

void AddHttpFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Server");
  flags.Add("--host", o.http.host, "address to listen on");
  flags.Add("--port", o.http.port, "port to listen on; 0 = any free one")->check(CLI::Range(0, 65535));
  flags.Add("--api-key", o.api_keys, "key that clients must send; may be repeated")->delimiter(',');
  flags.Add("--api-key-file", o.api_key_file, "file with one key per line");
  flags.Switch("--insecure-no-auth", o.allow_no_keys, "listen beyond this machine without any key");
  flags.Add("--cors-origin", o.http.cors_origin, "origin of web pages that may call the server; * = any");
  flags.Add("--max-body", o.max_body_mib, "maximum size of a request in MiB")->check(CLI::Range(0.001, 1024.0));
  flags
      .Add("-to,--http-timeout,--timeout", o.http.timeout_seconds,
           "seconds without a byte after which a peer is dropped")
      ->check(CLI::Range(1, 86400));
  flags.Add("--http-idle", o.http.idle_seconds, "seconds a connection may stay open without a request")
      ->check(CLI::Range(1, 86400));
  flags.Add("--max-connections", o.http.max_connections, "connections served at once")->check(CLI::Range(1, 65536));
  flags.Switch("--no-webui,--no-ui", o.http.page, "do not serve the page for people at /", false);
  flags.Add("--slot-save-path", o.http.slot_save_path, "directory for /slots/{id}?action=save and restore");
}

void AddSamplingFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Sampling: what a request may override");
  SamplingOptions& s = o.sampling;
  flags.Add("-s,--seed", o.seed, "seed of requests that name none; -1 = a random one each");
  flags.Add("--temp,--temperature", s.temperature, "temperature; 0 = the most likely token")
      ->check(CLI::Range(0.0, 100.0));
  flags.Add("--top-k", s.top_k, "keep the k most likely tokens; 0 = all")->check(CLI::NonNegativeNumber);
  flags.Add("--top-p", s.top_p, "keep the most likely tokens that together reach p; 1 = all")
      ->check(CLI::Range(0.0, 1.0));
  flags.Add("--min-p", s.min_p, "drop tokens below p times the most likely; 0 = none")->check(CLI::Range(0.0, 1.0));
  flags.Add("--typical,--typical-p", s.typical_p, "locally typical sampling; 1 = off")->check(CLI::Range(0.0, 1.0));
  flags.Add("--top-nsigma,--top-n-sigma", s.top_n_sigma,
            "keep logits within n standard deviations of the best; -1 = off");
  flags.Add("--xtc-probability", s.xtc_probability, "chance of excluding the top choices; 0 = off")
      ->check(CLI::Range(0.0, 1.0));
  flags.Add("--xtc-threshold", s.xtc_threshold, "what counts as a top choice for XTC")->check(CLI::Range(0.0, 1.0));
  flags.Add("--repeat-last-n", s.repeat_last_n, "tokens the penalties look back; 0 = off, -1 = all")
      ->check(CLI::Range(-1, 1 << 30));
  flags.Add("--repeat-penalty", s.repeat_penalty, "penalty for repeated tokens; 1 = off")->check(CLI::PositiveNumber);
  flags.Add("--presence-penalty", s.presence_penalty, "subtracted if a token occurred");
  flags.Add("--frequency-penalty", s.frequency_penalty, "subtracted for each time a token occurred");
  flags.Add("--dry-multiplier", s.dry_multiplier, "DRY repetition penalty; 0 = off")->check(CLI::NonNegativeNumber);
  flags.Add("--dry-base", s.dry_base, "DRY: growth of the penalty with the length of the repetition");
  flags.Add("--dry-allowed-length", s.dry_allowed_length, "DRY: repetitions up to this length are free");
  flags.Add("--dry-penalty-last-n", s.dry_penalty_last_n, "DRY: tokens looked back; 0 = off, -1 = all")
      ->check(CLI::Range(-1, 1 << 30));
}

}  // namespace

void AddServeFlags(Flags& flags, ServeOptions& options) {
  AddModelFlags(flags, options);
  AddContextFlags(flags, options);
  AddSpeculationFlags(flags, options);
  AddDraftModelFlags(flags, options);
  AddSchedulerFlags(flags, options);
  AddHttpFlags(flags, options);
  AddSamplingFlags(flags, options);
  flags.Group("Other");
  flags.Switch("-v,--verbose", options.verbose, "log details for developers, including llama.cpp's own log");
  for (const char* names : {"--jinja", "-cb,--cont-batching", "--metrics", "--slots", "--props", "--warmup"}) {
    flags.AlwaysOn(names);
  }
}

}  // namespace outrider
