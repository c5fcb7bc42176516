// The endpoints that do not generate: what the server is, what it is doing, and text to tokens. Each is a function from
// the parsed request (and the state it reports on) to JSON or text; the HTTP layer only routes.
#pragma once

#include <string>
#include <vector>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"
#include "scheduler/stats.h"

namespace outrider {

// What is known about the model and its settings; fixed at start. Reported by /props and /v1/models.
struct ServerInfo {
  std::string model_path;
  std::string model_description;  // "llama 135M Q4_1"
  uint64_t model_bytes = 0;
  uint64_t model_parameters = 0;
  int trained_context = 0;
  int embedding_size = 0;
  uint64_t model_fingerprint = 0;  // of the weights; what slot files belong to
  std::string kernels;             // who computes what: "ggml", "outrider (avx2) for q4_0 and attention"
  std::string rollback;            // how rejected tokens leave the memory
  std::string exactness;           // "" if outputs do not depend on the batch; else why they may
  std::vector<std::string> exactness_rests_on = {};  // why they do not
  std::string build;                                 // "outrider 0.1.0, llama.cpp 0.5.0"
  bool slots = true;                                 // GET /slots is served
  bool page = true;                                  // the page for people is served
  std::string quantisation = {};                     // "Q4_1"
};

// Who asks what the slots are doing. Of slots that hold the text of another owner a viewer learns only whether they are
// busy: how long a prompt is says something about it, too.
struct Viewer {
  std::string owner = {};  // as GenerationRequest::owner
  bool sees_all = false;   // an administrator

  auto operator<=>(const Viewer&) const = default;
};

Json ModelsJson(const ApiContext& context, const ServerInfo& info);  // GET /v1/models
Json PropsJson(const ApiContext& context, const ServerInfo& info);   // GET /props
Json SlotsJson(const std::vector<SlotStatus>& slots, const Viewer& viewer, const ApiContext& context);  // GET /slots
std::string MetricsText(const SchedulerStats& stats);                                                   // GET /metrics
Result<Json> TokenizeJson(const Json& body, const ApiContext& context);       // POST /tokenize
Result<Json> DetokenizeJson(const Json& body, const ApiContext& context);     // POST /detokenize
Result<Json> ApplyTemplateJson(const Json& body, const ApiContext& context);  // POST /apply-template

}  // namespace outrider
