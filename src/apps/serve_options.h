// Everything `outrider serve` can be told. The option structs of the rooms that it starts are filled directly; the
// fields below them belong to none of those rooms. serve_flags.cc gives each field its flag and its one line of help,
// from which
// `--help`, the config file and docs/FLAGS.md come.
#pragma once

#include <string>
#include <vector>

#include "apps/speculation.h"
#include "engine/model_options.h"
#include "http/server.h"
#include "sampling/sampling_options.h"
#include "scheduler/scheduler.h"

namespace outrider {

struct ServeOptions {
  ModelOptions model;
  ContextOptions context;
  SchedulerOptions scheduler;
  HttpOptions http;
  SamplingOptions sampling;
  SpeculationSettings speculation;

  std::vector<std::string> replica;  // devices of another copy of the model; empty = no copy
  std::string alias;                 // model name in answers; "" = the file's name without .gguf
  std::string numa;                  // distribute, isolate or numactl
  std::string chat_template;         // Jinja source that replaces the model's
  std::string chat_template_file;    // the same from a file
  long long seed = -1;               // seed of requests that name none; -1 = a random one each
  int max_tokens = -1;               // limit for the tokens of an answer; -1 = the context
  std::vector<std::string> api_keys;
  std::string api_key_file;
  bool allow_no_keys = false;  // listen beyond loopback without a key
  bool embeddings = false;
  std::string pooling;
  double max_body_mib = 8;
  double request_seconds = 0;  // limit for a request's time, waiting included; 0 = none
  double drain_seconds = 30;   // how long running requests may go on after SIGTERM
  bool verbose = false;
};

}  // namespace outrider
