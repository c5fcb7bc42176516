#include "chat/chat_tool.h"

#include "chat/check.h"

namespace outrider {

Result<ChatTool> MakeTool(Json function, const std::string& name_field, const std::string& parameters_field) {
  if (const Status status = CheckFunctionName(function["name"], name_field); !status.ok()) return status;
  ChatTool tool;
  if (function.contains("parameters") && !function["parameters"].is_null()) {
    Result<JsonSchema> schema = JsonSchema::Read(function["parameters"], parameters_field);
    if (!schema.ok()) return schema.status();
    function["parameters"] = schema->json();
    tool.parameters = std::move(*schema);
  }
  tool.function = std::move(function);
  return tool;
}

Result<ChatTool> ReadTool(const Json& tool, const std::string& field) {
  if (!tool.is_object() || !tool.contains("type") || tool["type"] != "function") {
    return InvalidArgument("must be an object with type \"function\"", field);
  }
  const std::string path = field + ".function";
  if (!tool.contains("function") || !tool["function"].is_object()) {
    return InvalidArgument("must be an object with a name", path);
  }
  Json function = tool["function"];
  if (function.contains("description") && !function["description"].is_null() && !function["description"].is_string()) {
    return InvalidArgument("must be a string", path + ".description");
  }
  return MakeTool(std::move(function), path + ".name", path + ".parameters");
}

}  // namespace outrider
