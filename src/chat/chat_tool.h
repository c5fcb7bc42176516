// A function that the model may call, as a request describes it.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "chat/json_schema.h"

namespace outrider {

struct ChatTool {
  Json function;  // {"name", "description", "parameters", …}: what a template may show the model
  std::optional<JsonSchema> parameters;  // function["parameters"], read; nothing if the tool has none

  std::string name() const { return function["name"].get<std::string>(); }
};

// `function`: {"name", "description", "parameters", …}, with a string as the name. The fields are the places of name
// and parameters in the request, which errors (kInvalidArgument) name.
Result<ChatTool> MakeTool(Json function, const std::string& name_field, const std::string& parameters_field);

// A tool in OpenAI's shape, {"type": "function", "function": {…}}. `field` is its place in the request.
Result<ChatTool> ReadTool(const Json& tool, const std::string& field);

}  // namespace outrider
