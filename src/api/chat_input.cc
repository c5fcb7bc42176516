#include "api/chat_input.h"

#include "api/fields.h"
#include "api/output_format.h"
#include "api/turn_input.h"

namespace outrider {
namespace {

// "auto", "none", "required", or {"type": "function", "function": {"name": ...}}, which leaves only that tool to
// require.
Status ReadToolChoice(const Json& choice, ChatInput* input) {
  if (choice.is_null() || choice == "auto") return {};
  if (choice == "none" || choice == "required") {
    input->tool_choice = choice == "none" ? ToolChoice::kNone : ToolChoice::kRequired;
    return {};
  }
  FieldReader fields(choice, "tool_choice.");
  if (!choice.is_object() || fields.At("type") != "function") {
    return InvalidArgument("must be \"auto\", \"none\", \"required\" or an object of type \"function\"", "tool_choice");
  }
  std::string name;
  FieldReader function(fields.At("function"), "tool_choice.function.");
  ReadRequiredString("name", &function, &name);
  if (!function.status().ok()) return function.status();
  return RequireTool(name, "tool_choice.function.name", input);
}

}  // namespace

Result<ChatInput> ReadChatInput(const Json& body) {
  ChatInput input;
  std::string effort;
  FieldReader fields(body);
  if (!fields.Has("messages")) fields.Fail("messages", "is required");
  fields.Array("messages", &input.messages);
  fields.Array("tools", &input.tools);
  fields.Bool("add_generation_prompt", &input.add_generation_prompt);
  fields.Bool("parallel_tool_calls", &input.parallel_tool_calls);
  fields.Object("chat_template_kwargs", &input.template_arguments);
  fields.String("reasoning_effort", &effort);
  if (!fields.status().ok()) return fields.status();
  SetReasoningEffort(effort, &input);
  if (const Status status = ReadToolChoice(fields.At("tool_choice"), &input); !status.ok()) return status;
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
