#include "api/turn_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/attachments.h"
#include "api/prepare.h"

namespace outrider {

std::string ElementField(std::string_view list_field, size_t index) {
  return fmt::format("{}[{}]", list_field, index);
}

void ReadRequiredString(const char* name, FieldReader* reader, std::string* out) {
  reader->String(name, out);
  if (out->empty()) reader->Fail(name, "is required");
}

Status ReadBlockType(const Json& block, const std::string& field, std::string* type) {
  FieldReader reader(block, field + ".");
  ReadRequiredString("type", &reader, type);
  return reader.status();
}

Status ReadTextBlock(const Json& block, const std::string& field, std::initializer_list<std::string_view> types,
                     std::string* out) {
  std::string type;
  if (Status status = ReadBlockType(block, field, &type); !status.ok()) return status;
  if (std::find(types.begin(), types.end(), type) == types.end()) {
    return InvalidArgument(fmt::format("is \"{}\", which cannot be read here", type), field + ".type");
  }
  const auto text = block.find("text");
  if (text == block.end() || !text->is_string()) return InvalidArgument("must be a string", field + ".text");
  *out = text->get<std::string>();
  return {};
}

Status ReadText(const Json& value, const std::string& field, std::initializer_list<std::string_view> types,
                std::string_view separator, std::string* out) {
  const ReadFileBlock no_files = [](const Json&, const std::string&, const std::string&, ChatInput*) {
    return Result<std::string>(std::string());
  };
  ChatInput nothing;
  return ReadTextAndFiles(value, field, types, separator, no_files, &nothing, out);
}

Status ReadTextAndFiles(const Json& value, const std::string& field, std::initializer_list<std::string_view> types,
                        std::string_view separator, ReadFileBlock read_file, ChatInput* input, std::string* out) {
  out->clear();
  if (value.is_null()) return {};
  if (value.is_string()) {
    *out = value.get<std::string>();
    return {};
  }
  if (!value.is_array()) return InvalidArgument("must be a string or a list of text blocks", field);
  for (size_t i = 0; i < value.size(); ++i) {
    std::string type, text;
    const std::string place = ElementField(field, i);
    if (Status status = ReadBlockType(value[i], place, &type); !status.ok()) return status;
    Result<std::string> marker = read_file(value[i], type, place, input);
    if (!marker.ok()) return marker.status();
    const bool is_file = !marker->empty();
    if (is_file) {
      text = std::move(*marker);
    } else if (Status status = ReadTextBlock(value[i], place, types, &text); !status.ok()) {
      return status;
    }
    if (i > 0 && !is_file && !EndsWithFile(*out, input->attachments)) *out += separator;
    *out += text;
  }
  return {};
}

std::string_view TextSeparator(std::string_view role) {
  return role == "assistant" ? "" : "\n";
}

void AddTurn(std::string_view role, std::string_view text, ChatInput* input) {
  if (input->messages.empty() || input->messages.back()["role"] != role) {
    input->messages.push_back({{"role", role}, {"content", text}});
    return;
  }
  auto& content = input->messages.back()["content"].get_ref<std::string&>();
  const bool beside_file = BeginsWithFile(text, input->attachments) || EndsWithFile(content, input->attachments);
  if (!content.empty() && !text.empty() && !beside_file) content += TextSeparator(role);
  content += text;
}

void AddToolCall(const ToolCall& call, ChatInput* input) {
  AddTurn("assistant", "", input);
  input->messages.back()["tool_calls"].push_back(
      {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
}

void AddReasoning(std::string_view text, ChatInput* input) {
  if (text.empty()) return;
  AddTurn("assistant", "", input);
  Json& reasoning = input->messages.back()["reasoning_content"];
  reasoning = reasoning.is_string() ? reasoning.get<std::string>().append(text) : std::string(text);
}

void AddToolResult(const std::string& call_id, const std::string& text, ChatInput* input) {
  input->messages.push_back({{"role", "tool"}, {"tool_call_id", call_id}, {"content", text}});
}

Status AddTool(const std::string& name, const std::string& description, const Json& parameters,
               const std::string& field, const char* parameters_key, ChatInput* input) {
  Result<ChatTool> tool = MakeTool({{"name", name}, {"description", description}, {"parameters", parameters}},
                                   field + ".name", fmt::format("{}.{}", field, parameters_key));
  if (!tool.ok()) return tool.status();
  input->tools.push_back(std::move(*tool));
  return {};
}

Status RequireTool(const std::string& name, const std::string& field, ChatInput* input) {
  for (const ChatTool& tool : input->tools) {
    if (tool.name() != name) continue;
    input->tools = std::vector<ChatTool>{tool};
    input->tool_choice = ToolChoice::kRequired;
    return {};
  }
  return NotAmongTheTools(name, field);
}

Status NotAmongTheTools(const std::string& name, const std::string& field) {
  return InvalidArgument(fmt::format("is \"{}\", which is not among the tools", name), field);
}

Status ReadSchema(const Json& format, const std::string& field, ChatInput* input) {
  FieldReader reader(format, field + ".");
  Json schema;
  reader.Object("schema", &schema);
  if (!reader.Has("schema")) reader.Fail("schema", "is required");
  if (!reader.status().ok()) return reader.status();
  Result<JsonSchema> read = JsonSchema::Read(schema, field + ".schema");
  if (!read.ok()) return read.status();
  input->json_schema = std::move(*read);
  return {};
}

Result<std::shared_ptr<const ChatParser>> PrepareTurns(const ChatInput& input, const char* conversation,
                                                       const ApiContext& context, GenerationRequest* request) {
  Result<std::shared_ptr<const ChatParser>> parser = PrepareChat(input, context, request);
  if (parser.ok()) return parser;
  const Status status = parser.status();
  std::string field = status.field();
  if (field.starts_with("messages")) field = conversation;
  if (status.code() == StatusCode::kContextExceeded)
    return ContextExceeded(status.message(), field, status.tokens(), status.max_tokens());
  return Status(status.code(), status.message(), field);
}

}  // namespace outrider
