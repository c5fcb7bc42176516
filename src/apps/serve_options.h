// Everything `outrider serve` can be told. The option structs of the rooms that it starts are filled directly; the
// fields below them belong to none of those rooms. serve_flags.cc gives each field its flag and its one line of help,
// from which
// `--help`, the config file and docs/FLAGS.md come.
#pragma once

#include <string>
#include <vector>

#include "apps/adapter_flags.h"
#include "apps/speculation.h"
#include "base/log.h"
#include "engine/model_options.h"
#include "http/server.h"
#include "sampling/sampling_options.h"
#include "scheduler/scheduler.h"

namespace outrider {

// Defaults of what requests may say themselves, as texts; apps/request_defaults.h reads them.
struct RequestFlags {
  std::string samplers, sampler_letters;  // the order of sampling, in one of two spellings; "" = the usual
  std::vector<std::string> dry_breakers;  // empty = the usual
  std::vector<std::string> logit_bias;    // "15043+1"
  std::vector<std::string> stop;
  bool escapes = true;  // "\\n" in stop and dry_breakers is a newline
  bool ignore_eos = false;
  bool reuse_prefix = true;
  std::string grammar, grammar_file, json_schema, json_schema_file;  // at most one of them
};

struct ChatFlags {
  std::string source;              // Jinja source that replaces the model's
  std::string source_file;         // the same from a file
  std::string arguments;           // JSON object: variables of the template
  std::string reasoning = "auto";  // on, off, auto: its variable enable_thinking
  std::string reasoning_effort;    // its variable of this name; "" = not set
  bool preserve_reasoning = true;  // its variable of this name
  ReasoningDefaults answer;        // where reasoning goes in an answer, and how long it may be
};

// Models that are fetched first.
struct DownloadFlags {
  std::string repo;        // user/model[:quant]
  std::string file;        // of the repository; "" = by the quantisation
  std::string url;         // of a file, instead of a repository
  std::string media_url;   // of a projector
  std::string token;       // for the repositories
  std::string draft_repo;  // of the draft model
  bool offline = false;    // only what is in the cache
};

struct LogFlags {
  bool verbose = false;
  int verbosity = 3;  // llama.cpp's scale
  std::string file;
  bool disabled = false;
  LogFormat format;
};

// Instead of serving.
struct PrintFlags {
  bool version = false;
  bool devices = false;
  bool cached_models = false;
};

struct ServeOptions {
  ModelOptions model;
  MediaOptions media;
  AdapterFlags adapters;
  ContextOptions context;
  SchedulerOptions scheduler;
  int prompt_slice = 0;  // 0 = as fits the model's place
  static constexpr int kAutoCache = -2;
  int cache_mib = kAutoCache;  // for prompts beyond those of the slots; -1 = no limit
  HttpOptions http;
  SamplingOptions sampling;
  SpeculationSettings speculation;
  RequestFlags requests;
  ChatFlags chat;
  DownloadFlags download;
  LogFlags log;
  PrintFlags print;

  std::vector<std::string> replica;  // devices of another copy of the model; empty = no copy
  std::vector<std::string> aliases;  // model name in answers, and more names; empty = the file's name without .gguf
  std::string numa;                  // distribute, isolate or numactl
  long long seed = -1;               // seed of requests that name none; -1 = a random one each
  int max_tokens = -1;               // tokens of answers whose request does not say; -1 = the context
  std::vector<std::string> api_keys;
  std::vector<std::string> admin_keys;
  std::string api_key_file;
  std::string tls_key_file, tls_certificate_file;  // both or none
  bool allow_no_keys = false;                      // listen beyond loopback without a key
  bool embeddings = false;
  bool reranking = false;
  std::string pooling;
  double response_memory_mib = 0;  // for responses that may be continued by their id; 0 = they are not remembered
  bool suffix_first = false;       // /infill: the suffix before the prefix
  double max_body_mib = 8;
  double max_buffered_mib = 256;
  double slot_save_mib = 16384;
  bool show_paths = false;         // in /props and the log; otherwise names of files only
  double request_seconds = 0;      // limit for a request's time, waiting included; 0 = none
  double drain_seconds = 30;       // how long running requests may go on after SIGTERM
  std::vector<std::string> notes;  // lines for the log about the command line
};

}  // namespace outrider
