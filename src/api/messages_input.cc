#include "api/messages_input.h"

#include <fmt/format.h>

#include <limits>

#include "api/attachments.h"
#include "api/fields.h"
#include "api/turn_input.h"
#include "chat/check.h"

namespace outrider {
namespace {

Status ReadToolUse(const Json& block, const std::string& field, ChatInput* input) {
  FieldReader reader(block, field + ".");
  ToolCall call;
  Json arguments = Json::object();
  ReadRequiredString("id", &reader, &call.id);
  ReadRequiredString("name", &reader, &call.name);
  reader.Object("input", &arguments);
  if (!reader.status().ok()) return reader.status();
  call.arguments = DumpJson(arguments);
  AddToolCall(call, input);
  return {};
}

// {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": …}}
Result<std::string> ReadImageBlock(const Json& block, const std::string& type, const std::string& field,
                                   ChatInput* input) {
  if (type != "image") return std::string();
  const std::string source_field = field + ".source";
  std::string source_type;
  const Json& source = FieldReader(block).At("source");
  if (Status status = ReadBlockType(source, source_field, &source_type); !status.ok()) return status;
  if (source_type == "base64") {
    return Attach(ReadBase64(FieldReader(source).At("data"), source_field + ".data"), MediaKind::kImage,
                  source_field + ".data", &input->attachments);
  }
  if (source_type == "url") {
    return Attach(ReadDataUrl(FieldReader(source).At("url"), MediaKind::kImage, source_field + ".url"),
                  MediaKind::kImage, source_field + ".url", &input->attachments);
  }
  return InvalidArgument("must be \"base64\": this server keeps no files", source_field + ".type");
}

Status ReadToolResult(const Json& block, const std::string& field, ChatInput* input) {
  FieldReader reader(block, field + ".");
  std::string id, text;
  ReadRequiredString("tool_use_id", &reader, &id);
  if (!reader.status().ok()) return reader.status();
  Status status = ReadTextAndFiles(reader.At("content"), field + ".content", {"text"}, TextSeparator("tool"),
                                   ReadImageBlock, input, &text);
  if (!status.ok()) return status;
  AddToolResult(id, text, input);
  return {};
}

// What the model thought before it said the rest of the message. The template decides whether it shows earlier
// reasoning.
Status ReadThinkingBlock(const Json& block, const std::string& field, ChatInput* input) {
  FieldReader reader(block, field + ".");
  std::string thinking;
  if (!reader.Has("thinking")) reader.Fail("thinking", "is required");
  reader.String("thinking", &thinking);
  if (reader.status().ok()) AddReasoning(thinking, input);
  return reader.status();
}

// Tool blocks go into the conversation at once, text is collected.
Status ReadBlock(const std::string& role, const Json& block, const std::string& field, ChatInput* input,
                 std::vector<std::string>* texts) {
  std::string type;
  if (Status status = ReadBlockType(block, field, &type); !status.ok()) return status;
  const bool assistant = role == "assistant";
  if (type == "tool_use" && assistant) return ReadToolUse(block, field, input);
  if (type == "tool_result" && role == "user") return ReadToolResult(block, field, input);
  if (type == "tool_use" || type == "tool_result") {
    return InvalidArgument(fmt::format("is \"{}\", which the role {} cannot have", type, role), field + ".type");
  }
  if (assistant && type == "redacted_thinking") return {};  // nobody but Anthropic can read it
  if (assistant && type == "thinking") return ReadThinkingBlock(block, field, input);
  Result<std::string> marker = ReadImageBlock(block, type, field, input);
  if (!marker.ok()) return marker.status();
  texts->push_back(std::move(*marker));
  return texts->back().empty() ? ReadTextBlock(block, field, {"text"}, &texts->back()) : Status();
}

// The text of a message comes after its tool results, which must follow the calls they answer.
Status ReadBlocks(const std::string& role, const Json& blocks, const std::string& field, ChatInput* input) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (Status status = ReadBlock(role, blocks[i], ElementField(field, i), input, &texts); !status.ok()) return status;
  }
  const bool only_results = texts.empty() && !input->messages.empty() && input->messages.back()["role"] == "tool";
  if (!only_results) AddTurn(role, "", input);
  for (const std::string& text : texts) AddTurn(role, text, input);
  return {};
}

Status ReadMessage(const Json& message, const std::string& field, ChatInput* input) {
  FieldReader reader(message, field + ".");
  std::string role;
  reader.String("role", &role);
  if (!reader.status().ok()) return reader.status();
  if (role != "user" && role != "assistant" && role != "system") {
    return InvalidArgument("must be \"user\" or \"assistant\"", field + ".role");
  }
  const Json& content = reader.At("content");
  if (content.is_string()) {
    AddTurn(role, content.get_ref<const std::string&>(), input);
    return {};
  }
  if (!content.is_array()) return InvalidArgument("must be a string or a list of content blocks", field + ".content");
  return ReadBlocks(role, content, field + ".content", input);
}

Status ReadTool(const Json& tool, const std::string& field, ChatInput* input) {
  FieldReader reader(tool, field + ".");
  std::string type = "custom", name, description;
  Json schema;
  reader.String("type", &type);
  if (type != "custom") reader.Fail("type", fmt::format("is \"{}\", but this server runs no tools of its own", type));
  ReadRequiredString("name", &reader, &name);
  reader.String("description", &description);
  reader.Object("input_schema", &schema);
  if (!reader.Has("input_schema")) reader.Fail("input_schema", "is required");
  if (!reader.status().ok()) return reader.status();
  return AddTool(name, description, schema, field, "input_schema", input);
}

Status ReadToolChoice(const Json& choice, ChatInput* input) {
  if (choice.is_null()) return {};
  std::string type, name;
  if (Status status = ReadBlockType(choice, "tool_choice", &type); !status.ok()) return status;
  FieldReader reader(choice, "tool_choice.");
  bool sequential = true;  // several calls at once only if asked for: small models do not know where to stop
  reader.String("name", &name);
  reader.Bool("disable_parallel_tool_use", &sequential);
  if (!reader.status().ok()) return reader.status();
  input->parallel_tool_calls = !sequential;
  if (type == "auto") return {};
  if (type == "tool") return RequireTool(name, "tool_choice.name", input);
  if (type == "none") {
    input->tool_choice = ToolChoice::kNone;
    return {};
  }
  if (type != "any") return InvalidArgument("must be \"auto\", \"any\", \"tool\" or \"none\"", "tool_choice.type");
  if (input->tools.empty()) return InvalidArgument("is \"any\", but there are no tools", "tool_choice");
  input->tool_choice = ToolChoice::kRequired;
  return {};
}

Status ReadOutputConfig(const Json& config, ChatInput* input) {
  if (config.is_null()) return {};
  const FieldReader outer(config, "output_config.");
  if (!outer.Has("format")) return outer.status();
  const Json& format = outer.At("format");
  std::string type;
  if (Status status = ReadBlockType(format, "output_config.format", &type); !status.ok()) return status;
  if (type != "json_schema") return InvalidArgument("must be \"json_schema\"", "output_config.format.type");
  return ReadSchema(format, "output_config.format", input);
}

Status ReadThinking(const Json& thinking, ChatInput* input) {
  if (thinking.is_null()) return {};
  std::string type;
  if (Status status = ReadBlockType(thinking, "thinking", &type); !status.ok()) return status;
  if (type == "disabled") input->template_arguments["enable_thinking"] = false;
  FieldReader reader(thinking, "thinking.");
  if (type == "enabled") reader.Int("budget_tokens", 0, std::numeric_limits<int>::max(), &input->reasoning_budget);
  return reader.status();
}

}  // namespace

Result<ChatInput> ReadMessagesInput(const Json& body) {
  FieldReader reader(body);
  ChatInput input;
  Json messages = Json::array(), tools = Json::array();
  reader.Array("messages", &messages);
  reader.Array("tools", &tools);
  Status status = reader.status();
  if (status.ok() && messages.empty()) status = InvalidArgument("must have at least one message", "messages");

  std::string system;
  if (status.ok()) status = ReadText(reader.At("system"), "system", {"text"}, TextSeparator("system"), &system);
  if (!system.empty()) AddTurn("system", system, &input);
  for (size_t i = 0; status.ok() && i < messages.size(); ++i) {
    status = ReadMessage(messages[i], ElementField("messages", i), &input);
  }
  if (status.ok()) status = CheckToolCount(tools.size());
  for (size_t i = 0; status.ok() && i < tools.size(); ++i) {
    status = ReadTool(tools[i], ElementField("tools", i), &input);
  }
  if (status.ok()) status = ReadToolChoice(reader.At("tool_choice"), &input);
  if (status.ok()) status = ReadOutputConfig(reader.At("output_config"), &input);
  if (status.ok()) status = ReadThinking(reader.At("thinking"), &input);
  if (!status.ok()) return status;
  return input;
}

}  // namespace outrider
