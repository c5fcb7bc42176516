#include "api/chat_input.h"

#include "api/attachments.h"
#include "api/fields.h"
#include "api/output_format.h"
#include "api/turn_input.h"
#include "chat/check.h"

namespace outrider {
namespace {

// "auto", "none", "required", or {"type": "function", "function": {"name": ...}}. The last one requires a call of that
// tool, whose name goes to `only_tool`.
Status ReadToolChoice(const Json& choice, ChatInput* input, std::string* only_tool) {
  if (choice.is_null() || choice == "auto") return {};
  if (choice == "none" || choice == "required") {
    input->tool_choice = choice == "none" ? ToolChoice::kNone : ToolChoice::kRequired;
    return {};
  }
  FieldReader fields(choice, "tool_choice.");
  if (!choice.is_object() || fields.At("type") != "function") {
    return InvalidArgument("must be \"auto\", \"none\", \"required\" or an object of type \"function\"", "tool_choice");
  }
  FieldReader function(fields.At("function"), "tool_choice.function.");
  ReadRequiredString("name", &function, only_tool);
  input->tool_choice = ToolChoice::kRequired;
  return function.status();
}

// "continue_final_message": true, or which part of the message: "content" or "reasoning_content".
Status ReadContinuation(const Json& body, ChatInput* input) {
  const FieldReader fields(body);
  const char* kName = "continue_final_message";
  const Json& value = fields.At(kName);
  if (value.is_null() || value == false) return {};
  if (value == "content") {
    input->continuation = Continuation::kContent;
  } else if (value == "reasoning_content") {
    input->continuation = Continuation::kReasoning;
  } else if (value == true) {
    input->continuation = Continuation::kAlways;
  } else {
    return InvalidArgument("must be true, false, \"content\" or \"reasoning_content\"", kName);
  }
  if (fields.At("add_generation_prompt") == true) {
    return InvalidArgument(
        "cannot be combined with add_generation_prompt: the answer either goes on with the last "
        "message or begins a new one",
        kName);
  }
  input->add_generation_prompt = false;
  return {};
}

// If only one tool may be called, the others are not even looked at, so that one with an unusable schema does no harm.
Status ReadTools(const Json& tools, const std::string& only_tool, ChatInput* input) {
  if (const Status status = CheckToolCount(tools.size()); !status.ok()) return status;
  for (size_t i = 0; i < tools.size(); ++i) {
    const bool wanted = only_tool.empty() || FieldReader(FieldReader(tools[i]).At("function")).At("name") == only_tool;
    if (!wanted) continue;
    Result<ChatTool> tool = ReadTool(tools[i], ElementField("tools", i));
    if (!tool.ok()) return tool.status();
    input->tools.push_back(std::move(*tool));
    if (!only_tool.empty()) return {};
  }
  return only_tool.empty() ? Status() : NotAmongTheTools(only_tool, "tool_choice.function.name");
}

}  // namespace

Result<ChatInput> ReadChatInput(const Json& body) {
  ChatInput input;
  std::string effort, only_tool;
  Json tools = Json::array();
  FieldReader fields(body);
  if (!fields.Has("messages")) fields.Fail("messages", "is required");
  fields.Array("messages", &input.messages);
  fields.Array("tools", &tools);
  fields.Bool("add_generation_prompt", &input.add_generation_prompt);
  fields.Bool("parallel_tool_calls", &input.parallel_tool_calls);
  fields.Object("chat_template_kwargs", &input.template_arguments);
  fields.String("reasoning_effort", &effort);
  if (!fields.status().ok()) return fields.status();
  if (const Status status = AttachParts(&input.messages, &input.attachments); !status.ok()) return status;
  if (const Status status = ReadContinuation(body, &input); !status.ok()) return status;
  SetReasoningEffort(effort, &input);
  if (const Status status = ReadToolChoice(fields.At("tool_choice"), &input, &only_tool); !status.ok()) return status;
  if (const Status status = ReadTools(tools, only_tool, &input); !status.ok()) return status;
  if (const Status status = ReadOutputFormat(body, &input); !status.ok()) return status;
  return input;
}

void SetReasoningEffort(const std::string& effort, ChatInput* input) {
  if (effort == "none") {
    input->template_arguments["enable_thinking"] = false;
  } else if (!effort.empty()) {
    input->template_arguments["reasoning_effort"] = effort;
  }
}

}  // namespace outrider
