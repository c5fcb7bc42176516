#include "api/responses_input.h"

#include <fmt/format.h>

#include <utility>

#include "api/attachments.h"
#include "api/chat_input.h"
#include "api/fields.h"
#include "api/response_memory.h"
#include "api/turn_input.h"
#include "chat/check.h"

namespace outrider {
namespace {

constexpr const char* kNoState = "not supported: this server keeps no such state";

Status RefuseState(const FieldReader& reader) {
  for (const char* name : {"conversation", "prompt"}) {
    if (reader.Has(name)) return InvalidArgument(kNoState, name);
  }
  if (reader.Has("background") && reader.At("background") != false) return InvalidArgument(kNoState, "background");
  return {};
}

// Begins the conversation with that of the response which it continues, if it does.
Status ReadPreviousResponse(FieldReader* reader, const std::string& owner, const ApiContext& context,
                            ChatInput* input) {
  const char* kName = "previous_response_id";
  std::string id;
  reader->String(kName, &id);
  if (!reader->status().ok() || id.empty()) return reader->status();
  if (context.responses == nullptr) {
    return InvalidArgument(
        "not supported: this server does not remember responses; send the conversation in \"input\", or start the "
        "server with --response-memory MIB",
        kName);
  }
  Result<RememberedResponse> previous = context.responses->Find(owner, id, kName);
  if (!previous.ok()) return previous.status();
  input->messages = std::move(previous->conversation);
  input->attachments = std::move(previous->attachments);
  for (Attachment& file : input->attachments) file.field = kName;
  return {};
}

// They hold for this response only, so they are not part of the conversation that is remembered.
void PutInstructionsFirst(const std::string& instructions, ChatInput* input) {
  if (instructions.empty()) return;
  Json conversation = std::exchange(input->messages, Json::array());
  AddTurn("system", instructions, input);
  for (Json& message : conversation) {
    if (message["role"] == "system" && input->messages.size() == 1) {
      AddTurn("system", message["content"].get_ref<const std::string&>(), input);
    } else {
      input->messages.push_back(std::move(message));
    }
  }
}

// {"type": "input_image", "image_url": "data:…"}
Result<std::string> ReadImageItem(const Json& block, const std::string& type, const std::string& field,
                                  ChatInput* input) {
  if (type != "input_image") return std::string();
  const FieldReader reader(block, field + ".");
  if (reader.Has("file_id")) return InvalidArgument("is not supported: this server keeps no files", field + ".file_id");
  return Attach(ReadDataUrl(reader.At("image_url"), MediaKind::kImage, field + ".image_url"), MediaKind::kImage,
                field + ".image_url", &input->attachments);
}

Status ReadMessageItem(const Json& item, const std::string& field, ChatInput* input) {
  FieldReader reader(item, field + ".");
  std::string role, text;
  reader.String("role", &role);
  if (role != "user" && role != "assistant" && role != "system" && role != "developer") {
    reader.Fail("role", "must be \"user\", \"assistant\", \"system\" or \"developer\"");
  }
  if (!reader.Has("content")) reader.Fail("content", "is required");
  if (!reader.status().ok()) return reader.status();
  if (role == "developer") role = "system";  // the name templates know
  Status status = ReadTextAndFiles(reader.At("content"), field + ".content", {"input_text", "output_text"},
                                   TextSeparator(role), ReadImageItem, input, &text);
  if (status.ok()) AddTurn(role, text, input);
  return status;
}

Status ReadFunctionCall(const Json& item, const std::string& field, ChatInput* input) {
  FieldReader reader(item, field + ".");
  ToolCall call;
  ReadRequiredString("call_id", &reader, &call.id);
  ReadRequiredString("name", &reader, &call.name);
  reader.String("arguments", &call.arguments);
  if (call.arguments.empty()) call.arguments = "{}";
  if (!ParseJson(call.arguments).ok()) reader.Fail("arguments", "must be JSON as text");
  if (reader.status().ok()) AddToolCall(call, input);
  return reader.status();
}

Status ReadFunctionCallOutput(const Json& item, const std::string& field, ChatInput* input) {
  FieldReader reader(item, field + ".");
  std::string call_id, text;
  ReadRequiredString("call_id", &reader, &call_id);
  if (!reader.Has("output")) reader.Fail("output", "is required");
  if (!reader.status().ok()) return reader.status();
  Status status = ReadTextAndFiles(reader.At("output"), field + ".output", {"input_text"}, TextSeparator("tool"),
                                   ReadImageItem, input, &text);
  if (status.ok()) AddToolResult(call_id, text, input);
  return status;
}

// What the model thought before what follows. Its summary is not the model's own words.
Status ReadReasoningItem(const Json& item, const std::string& field, ChatInput* input) {
  const FieldReader reader(item, field + ".");
  std::string text;
  Status status = ReadText(reader.At("content"), field + ".content", {"reasoning_text"}, "\n", &text);
  if (status.ok()) AddReasoning(text, input);
  return status;
}

Status ReadItem(const Json& item, const std::string& field, ChatInput* input) {
  FieldReader reader(item, field + ".");
  std::string type = "message";
  reader.String("type", &type);
  if (!reader.status().ok()) return reader.status();
  if (type == "message") return ReadMessageItem(item, field, input);
  if (type == "function_call") return ReadFunctionCall(item, field, input);
  if (type == "function_call_output") return ReadFunctionCallOutput(item, field, input);
  if (type == "reasoning") return ReadReasoningItem(item, field, input);
  if (type == "item_reference") return InvalidArgument(kNoState, field + ".type");
  return InvalidArgument(
      fmt::format("is \"{}\"; this server takes message, function_call, function_call_output and reasoning", type),
      field + ".type");
}

Status ReadItems(const Json& items, ChatInput* input) {
  if (items.is_string()) {
    AddTurn("user", items.get_ref<const std::string&>(), input);
    return {};
  }
  if (!items.is_array() || items.empty()) return InvalidArgument("must be a string or a list of items", "input");
  for (size_t i = 0; i < items.size(); ++i) {
    if (Status status = ReadItem(items[i], ElementField("input", i), input); !status.ok()) return status;
  }
  if (input->messages.empty()) return InvalidArgument("has no messages", "input");
  return {};
}

Status ReadTool(const Json& tool, const std::string& field, ChatInput* input, Json* echo) {
  std::string type;
  if (Status status = ReadBlockType(tool, field, &type); !status.ok()) return status;
  FieldReader reader(tool, field + ".");
  std::string name, description;
  Json parameters = {{"type", "object"}, {"properties", Json::object()}};
  bool strict = true;
  if (type != "function") {
    reader.Fail("type", fmt::format("is \"{}\"; this server takes tools of type \"function\" only", type));
  }
  ReadRequiredString("name", &reader, &name);
  reader.String("description", &description);
  reader.Object("parameters", &parameters);
  reader.Bool("strict", &strict);
  if (!reader.status().ok()) return reader.status();
  echo->push_back({{"type", "function"},
                   {"name", name},
                   {"description", reader.At("description")},
                   {"parameters", parameters},
                   {"strict", strict}});
  return AddTool(name, description, parameters, field, "parameters", input);
}

Status ReadToolChoice(const Json& choice, ChatInput* input) {
  if (choice.is_null() || choice == "auto") return {};
  if (choice == "none") {
    input->tool_choice = ToolChoice::kNone;
    return {};
  }
  if (choice == "required") {
    if (input->tools.empty()) return InvalidArgument("is \"required\", but there are no tools", "tool_choice");
    input->tool_choice = ToolChoice::kRequired;
    return {};
  }
  if (!choice.is_object()) {
    return InvalidArgument("must be \"auto\", \"none\", \"required\" or {\"type\": \"function\", \"name\": …}",
                           "tool_choice");
  }
  FieldReader reader(choice, "tool_choice.");
  std::string type, name;
  ReadRequiredString("type", &reader, &type);
  if (type != "function") reader.Fail("type", "must be \"function\"");
  ReadRequiredString("name", &reader, &name);
  if (!reader.status().ok()) return reader.status();
  return RequireTool(name, "tool_choice.name", input);
}

Status ReadTextFormat(const Json& text, ChatInput* input, Json* echo) {
  *echo = {{"format", {{"type", "text"}}}};
  if (text.is_null()) return {};
  const FieldReader outer(text, "text.");
  if (!outer.Has("format")) return outer.status();
  const Json& format = outer.At("format");
  std::string type;
  if (Status status = ReadBlockType(format, "text.format", &type); !status.ok()) return status;
  if (type == "json_schema") {
    FieldReader reader(format, "text.format.");
    std::string name;
    ReadRequiredString("name", &reader, &name);
    if (!reader.status().ok()) return reader.status();
    if (Status status = ReadSchema(format, "text.format", input); !status.ok()) return status;
  } else if (type == "json_object") {
    input->json_schema = JsonSchema::AnyObject();
  } else if (type != "text") {
    return InvalidArgument("must be \"text\", \"json_object\" or \"json_schema\"", "text.format.type");
  }
  (*echo)["format"] = format;
  return {};
}

Status ReadReasoning(const Json& reasoning, ChatInput* input, Json* echo) {
  *echo = {{"effort", nullptr}, {"summary", nullptr}};
  if (reasoning.is_null()) return {};
  FieldReader reader(reasoning, "reasoning.");
  std::string effort;
  reader.String("effort", &effort);
  if (!reader.status().ok() || effort.empty()) return reader.status();
  (*echo)["effort"] = effort;
  SetReasoningEffort(effort, input);
  return {};
}

}  // namespace

Result<ResponsesInput> ReadResponsesInput(const Json& body, const std::string& owner, const ApiContext& context) {
  FieldReader reader(body);
  ResponsesInput input;
  std::string instructions, user;
  Json tools = Json::array(), echoed_tools = Json::array(), metadata = Json::object(), reasoning, text;
  reader.String("instructions", &instructions);
  reader.Array("tools", &tools);
  reader.Bool("parallel_tool_calls", &input.chat.parallel_tool_calls);
  reader.Object("metadata", &metadata);
  reader.String("user", &user);
  input.store = context.responses != nullptr;
  reader.Bool("store", &input.store);
  input.store = input.store && context.responses != nullptr;
  Status status = reader.status();
  if (status.ok()) status = RefuseState(reader);

  if (status.ok()) status = ReadPreviousResponse(&reader, owner, context, &input.chat);
  if (status.ok()) status = ReadItems(reader.At("input"), &input.chat);
  if (input.store) input.conversation = input.chat.messages;
  PutInstructionsFirst(instructions, &input.chat);
  if (status.ok()) status = CheckToolCount(tools.size());
  for (size_t i = 0; status.ok() && i < tools.size(); ++i) {
    status = ReadTool(tools[i], ElementField("tools", i), &input.chat, &echoed_tools);
  }
  if (status.ok()) status = ReadToolChoice(reader.At("tool_choice"), &input.chat);
  if (status.ok()) status = ReadTextFormat(reader.At("text"), &input.chat, &text);
  if (status.ok()) status = ReadReasoning(reader.At("reasoning"), &input.chat, &reasoning);
  if (!status.ok()) return status;

  input.settings = {{"instructions", reader.At("instructions")},
                    {"metadata", metadata},
                    {"parallel_tool_calls", input.chat.parallel_tool_calls},
                    {"previous_response_id", reader.At("previous_response_id")},
                    {"reasoning", reasoning},
                    {"store", input.store},
                    {"text", text},
                    {"tool_choice", reader.Has("tool_choice") ? reader.At("tool_choice") : Json("auto")},
                    {"tools", echoed_tools},
                    {"user", reader.At("user")}};
  return input;
}

}  // namespace outrider
