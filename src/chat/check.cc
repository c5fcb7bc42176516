#include "chat/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/request_budget.h"
#include "chat/schema_work.h"

namespace outrider {
namespace {

constexpr size_t kMaxNameBytes = 256;

// llama-common matches property names with std::regex, which recurses once per character, and it copies all rules of a
// grammar for each pattern. These bounds keep the stack far from its end; what the rest of the work is, and its bound,
// is in chat/schema_work.h.
constexpr size_t kMaxSchemaNameBytes = 1024;
constexpr size_t kMaxPatterns = 200;           // each takes half a millisecond
constexpr size_t kMaxCopiedRules = 1'000'000;  // patterns times objects
constexpr size_t kMaxSchemaLevels = 1000;      // references followed; it recurses, and at a few thousand the stack ends

constexpr std::array<std::string_view, 6> kRoles = {"system", "developer", "user", "assistant", "tool", "function"};
constexpr std::array<std::string_view, 5> kReservedArguments = {"messages", "tools", "bos_token", "eos_token",
                                                                "add_generation_prompt"};

template <size_t N>
bool IsOneOf(std::string_view text, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// The value of a key, or null.
const Json& At(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

Status CheckOptionalString(const Json& object, const char* key, const std::string& path) {
  if (At(object, key).is_null() || At(object, key).is_string()) return {};
  return InvalidArgument("must be a string", fmt::format("{}.{}", path, key));
}

Status CheckContentPart(const Json& part, const std::string& path) {
  if (!part.is_object()) return InvalidArgument("must be an object like {\"type\": \"text\", \"text\": \"...\"}", path);
  const Json& type = At(part, "type");
  if (!type.is_string()) return InvalidArgument("must be a string", path + ".type");
  // A marker stands for a file (ChatInput::attachments).
  if (type != "text" && type != "media_marker") {
    return InvalidArgument(fmt::format("{} is not supported; text, image_url and input_audio are", DumpJson(type)),
                           path + ".type");
  }
  if (!At(part, "text").is_string()) return InvalidArgument("must be a string", path + ".text");
  return {};
}

Status CheckContent(const Json& message, bool may_be_null, const std::string& path) {
  const Json& content = At(message, "content");
  if (content.is_string() || (content.is_null() && may_be_null)) return {};
  if (content.is_null()) return InvalidArgument("is required", path);
  if (!content.is_array()) return InvalidArgument("must be a string or a list of text parts", path);
  for (size_t i = 0; i < content.size(); ++i) {
    if (const Status status = CheckContentPart(content[i], fmt::format("{}[{}]", path, i)); !status.ok()) return status;
  }
  return {};
}

Status CheckToolCall(const Json& call, const std::string& path) {
  if (!call.is_object()) return InvalidArgument("must be an object", path);
  if (const Status status = CheckOptionalString(call, "id", path); !status.ok()) return status;
  if (!At(call, "type").is_null() && At(call, "type") != "function") {
    return InvalidArgument("must be \"function\"", path + ".type");
  }
  const Json& function = At(call, "function");
  if (!function.is_object()) return InvalidArgument("must be an object with name and arguments", path + ".function");
  if (const Status status = CheckFunctionName(At(function, "name"), path + ".function.name"); !status.ok())
    return status;
  const Json& arguments = At(function, "arguments");
  if (arguments.is_object()) return {};
  // ParseJson, as it bounds the depth: templates recurse into the arguments.
  if (!arguments.is_string() || !ParseJson(arguments.get_ref<const std::string&>()).ok()) {
    return InvalidArgument("must be JSON as text", path + ".function.arguments");
  }
  return {};
}

Status CheckMessage(const Json& message, const std::string& path) {
  if (!message.is_object()) return InvalidArgument("must be an object", path);
  const Json& role = At(message, "role");
  if (!role.is_string()) return InvalidArgument("must be a string", path + ".role");
  if (!IsOneOf(role.get_ref<const std::string&>(), kRoles)) {
    return InvalidArgument(fmt::format("{} is not one of system, developer, user, assistant, tool", DumpJson(role)),
                           path + ".role");
  }
  const Json& calls = At(message, "tool_calls");
  if (!calls.is_null() && (role != "assistant" || !calls.is_array())) {
    return InvalidArgument("must be a list, in a message of the assistant", path + ".tool_calls");
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    if (const Status status = CheckToolCall(calls[i], fmt::format("{}.tool_calls[{}]", path, i)); !status.ok())
      return status;
  }
  if (const Status status = CheckContent(message, role == "assistant", path + ".content"); !status.ok()) return status;
  for (const char* key : {"reasoning_content", "name", "tool_call_id"}) {
    if (const Status status = CheckOptionalString(message, key, path); !status.ok()) return status;
  }
  return {};
}

// What a schema costs llama-common, gathered while walking through it.
struct SchemaSize {
  size_t levels = 0;   // of the deepest value
  size_t objects = 0;  // of which rules are made
  size_t patterns = 0;
  std::set<std::string> references;
};

Status CheckSchemaSize(const SchemaSize& size, const std::string& field) {
  if (size.patterns > kMaxPatterns || size.patterns * size.objects > kMaxCopiedRules) {
    return InvalidArgument("the schema has too many patterns", field);
  }
  // Each reference may lead into the next one, and is not followed within itself.
  if (size.references.size() * size.levels > kMaxSchemaLevels) {
    return InvalidArgument("the schema has too many references", field);
  }
  return {};
}

Status CheckSchemaNode(const Json& node, const std::string& field, size_t level, SchemaSize* size) {
  size->levels = std::max(size->levels, level);
  if (node.is_object()) {
    ++size->objects;
    if (At(node, "pattern").is_string()) ++size->patterns;
    if (At(node, "$ref").is_string()) size->references.insert(At(node, "$ref").get<std::string>());
    if (const Status status = CheckSchemaSize(*size, field); !status.ok()) return status;
    for (const auto& [key, value] : node.items()) {
      if (key.size() > kMaxSchemaNameBytes) {
        return InvalidArgument(fmt::format("the schema has a name of more than {} bytes", kMaxSchemaNameBytes), field);
      }
      if (key == "pattern" && value.is_string() && value.get_ref<const std::string&>().size() > kMaxSchemaNameBytes) {
        return InvalidArgument(fmt::format("the schema has a pattern of more than {} bytes", kMaxSchemaNameBytes),
                               field);
      }
      if (const Status status = CheckSchemaNode(value, field, level + 1, size); !status.ok()) return status;
    }
  } else if (node.is_array()) {
    for (const Json& item : node) {
      if (const Status status = CheckSchemaNode(item, field, level + 1, size); !status.ok()) return status;
    }
  }
  return {};
}

}  // namespace

Status CheckTemplateArguments(const Json& arguments) {
  constexpr const char* kField = "chat_template_kwargs";
  if (!arguments.is_object()) return InvalidArgument("must be an object", kField);
  for (const auto& [name, value] : arguments.items()) {
    if (IsOneOf(name, kReservedArguments)) {
      return InvalidArgument("is set by the server", fmt::format("{}.{}", kField, name));
    }
    if (name == "enable_thinking" && !value.is_boolean()) {
      return InvalidArgument("must be true or false", fmt::format("{}.{}", kField, name));
    }
  }
  return {};
}

Status CheckFunctionName(const Json& name, const std::string& field) {
  const bool good = name.is_string() && !name.get_ref<const std::string&>().empty() &&
                    name.get_ref<const std::string&>().size() <= kMaxNameBytes;
  if (good) return {};
  return InvalidArgument(fmt::format("must be a string of 1 to {} bytes", kMaxNameBytes), field);
}

Status CheckSchema(const Json& schema, const std::string& field) {
  if (!schema.is_object()) return InvalidArgument("must be a JSON schema, which is an object", field);
  SchemaSize size;
  if (const Status status = CheckSchemaNode(schema, field, /*level=*/1, &size); !status.ok()) return status;
  return CheckSchemaSize(size, field);
}

Status CheckToolCount(size_t tools) {
  if (tools <= kMaxTools) return {};
  return InvalidArgument(fmt::format("must be a list of at most {} tools", kMaxTools), "tools");
}

Status CheckChatInput(const ChatInput& input) {
  if (!input.messages.is_array() || input.messages.empty() || input.messages.size() > kMaxMessages) {
    return InvalidArgument(fmt::format("must be a list of 1 to {} messages", kMaxMessages), "messages");
  }
  for (size_t i = 0; i < input.messages.size(); ++i) {
    if (const Status status = CheckMessage(input.messages[i], fmt::format("messages[{}]", i)); !status.ok())
      return status;
  }
  if (const Status status = CheckToolCount(input.tools.size()); !status.ok()) return status;
  uint64_t work = input.json_schema ? input.json_schema->work() : 0;
  for (const ChatTool& tool : input.tools) work += tool.parameters ? tool.parameters->work() : 0;
  if (work > kMaxSchemaWork) return InvalidArgument("their schemas have too many properties in all", "tools");
  if (input.tool_choice == ToolChoice::kRequired && input.tools.empty()) {
    return InvalidArgument("a tool is required, but there are no tools", "tool_choice");
  }
  const bool calls_tools = !input.tools.empty() && input.tool_choice != ToolChoice::kNone;
  if (calls_tools && !input.grammar.empty()) return InvalidArgument("cannot be combined with tools", "grammar");
  if (input.json_schema && !input.grammar.empty()) {
    return InvalidArgument("cannot be combined with a JSON schema", "grammar");
  }
  return CheckTemplateArguments(input.template_arguments);
}

}  // namespace outrider
