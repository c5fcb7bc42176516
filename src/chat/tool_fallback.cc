#include "chat/tool_fallback.h"

#include <fmt/format.h>
#include <json-schema-to-grammar.h>

#include <string>

namespace outrider {

const char* const kToolTemplate = R"(
{%- if tools %}
  {{- '<|im_start|>system\n<tools>\n' }}
  {%- for tool in tools %}{{- (tool | tojson) + '\n' }}{%- endfor %}
  {{- '</tools><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
  {{- '<|im_start|>' + message.role + '\n' }}
  {%- if message.content %}{{- message.content }}{%- endif %}
  {%- for call in message.tool_calls or [] %}
    {{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
    {{- call.function.arguments if call.function.arguments is string else (call.function.arguments | tojson) }}
    {{- '}\n</tool_call>' }}
  {%- endfor %}
  {{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %})";

namespace {

std::string ContentText(const Json& message) {
  const Json content = message.contains("content") ? message["content"] : Json();
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  for (const Json& part : content) {
    if (!text.empty()) text += '\n';
    text += part["text"].get<std::string>();
  }
  return text;
}

std::string ToolsText(const std::vector<ChatTool>& tools) {
  std::string text =
      "You may call functions to help with the user's request. These are the functions, as JSON schemas:\n<tools>\n";
  for (const ChatTool& tool : tools) text += DumpJson(tool.function) + "\n";
  text +=
      "</tools>\nTo call a function, answer with a JSON object inside <tool_call> tags:\n"
      "<tool_call>\n{\"name\": \"<function>\", \"arguments\": {<arguments>}}\n</tool_call>";
  return text;
}

std::string CallText(const Json& call) {
  const Json& arguments = call["function"]["arguments"];
  return fmt::format("<tool_call>\n{{\"name\": {}, \"arguments\": {}}}\n</tool_call>",
                     DumpJson(call["function"]["name"]),
                     arguments.is_string() ? arguments.get<std::string>() : DumpJson(arguments));
}

void AppendParagraph(const std::string& paragraph, std::string* text) {
  if (!text->empty()) *text += '\n';
  *text += paragraph;
}

bool IsToolResult(const Json& message) {
  return message["role"] == "tool" || message["role"] == "function";
}

}  // namespace

Json WriteToolsAsText(const Json& messages, const std::vector<ChatTool>& tools) {
  Json written = Json::array();
  size_t first = 0;
  if (!tools.empty()) {
    std::string system;
    if (messages[0]["role"] == "system" || messages[0]["role"] == "developer") {
      system = ContentText(messages[0]) + "\n";
      first = 1;
    }
    AppendParagraph(ToolsText(tools), &system);
    written.push_back({{"role", "system"}, {"content", system}});
  }
  for (size_t i = first; i < messages.size(); ++i) {
    Json message = messages[i];
    if (IsToolResult(message)) {
      const std::string result = fmt::format("<tool_response>\n{}\n</tool_response>", ContentText(message));
      // The results of parallel calls are one turn, as templates want roles to alternate.
      if (i > 0 && IsToolResult(messages[i - 1])) {
        written.back()["content"] = written.back()["content"].get<std::string>() + "\n" + result;
      } else {
        written.push_back({{"role", "user"}, {"content", result}});
      }
      continue;
    }
    if (message.contains("tool_calls") && !message["tool_calls"].empty()) {
      std::string text = ContentText(message);
      for (const Json& call : message["tool_calls"]) AppendParagraph(CallText(call), &text);
      message["content"] = text;
    }
    message.erase("tool_calls");
    written.push_back(std::move(message));
  }
  return written;
}

std::string ToolCallGrammar(const std::vector<ChatTool>& tools, bool parallel) {
  return build_grammar([&](const common_grammar_builder& builder) {
    const common_chat_schema_object empty_object;
    const common_chat_schema& no_parameters = empty_object;
    std::string any_call;
    for (const ChatTool& tool : tools) {
      const bool has_parameters = tool.parameters && !tool.parameters->json().empty();
      const common_chat_schema& schema = has_parameters ? *tool.parameters->document().root : no_parameters;
      const std::string name = tool.name();
      const std::string arguments = builder.add_schema("arguments-" + name, schema);
      const std::string before = fmt::format("{}\n{{\"name\": {}, \"arguments\": ", kToolCallTrigger, DumpJson(name));
      const std::string rule =
          fmt::format("{} {} {}", gbnf_format_literal(before), arguments, gbnf_format_literal("}\n</tool_call>"));
      any_call += (any_call.empty() ? "" : " | ") + builder.add_rule("call-" + name, rule);
    }
    const std::string call = builder.add_rule("call", any_call);
    builder.add_rule("root", parallel ? fmt::format("{0} (\"\\n\" {0})*", call) : call);
  });
}

}  // namespace outrider
