// What requests get that do not say it themselves, made from the flags.
#pragma once

#include <string>
#include <vector>

#include "apps/serve_options.h"
#include "base/json.h"
#include "base/status.h"
#include "sampling/sampling_options.h"

namespace outrider {

struct RequestDefaults {
  SamplingOptions sampling;
  std::vector<std::string> stop;
  Json template_arguments = Json::object();  // variables of the chat template
};

// kInvalidArgument names the flag that is wrong. Reads the files that flags name.
Result<RequestDefaults> MakeRequestDefaults(const ServeOptions& options);

// "\n", "\t", "\r", "\\", "\'", "\"" and "\x41" as the characters that they stand for; others stay as they are.
std::string ProcessEscapes(const std::string& text);

}  // namespace outrider
