// ModelOptions as libllama's parameters for loading a model. Checks every option; each reason why one cannot be used
// comes back as one sentence that names the flag.
#pragma once

#include <llama.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model_options.h"

namespace outrider {

// `params` points into the other fields, which must outlive the load.
struct LoadParams {
  llama_model_params params = llama_model_default_params();
  std::vector<ggml_backend_dev_t> devices;
  std::vector<std::string> patterns;
  std::vector<llama_model_tensor_buft_override> overrides;
  std::vector<llama_model_kv_override> kv_overrides;
  std::vector<float> split;
};

Status FillLoadParams(const ModelOptions& options, LoadParams& load);

// "key=type:value" with the types int, float, bool and str.
Result<llama_model_kv_override> ParseKvOverride(const std::string& text);

// "none", "linear", "yarn"; "" = as the file says.
Result<llama_rope_scaling_type> ParseRopeScaling(const std::string& name);

}  // namespace outrider
