// Templates and conversations for the tests of this room and of src/api.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "chat/chat_template.h"

namespace outrider {

// SmolLM2's, which the models in models/ carry: ChatML with a default system message, and no idea of tools.
inline constexpr const char* kSmolTemplate =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou "
    "are a helpful AI "
    "assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + "
    "'\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
    "}}{% endif %}";

// ChatML with reasoning in <think> tags.
inline constexpr const char* kThinkingTemplate = R"(
{%- for message in messages %}
  {{- '<|im_start|>' + message.role + '\n' }}
  {%- if message.role == 'assistant' and message.reasoning_content %}
    {{- '<think>\n' + message.reasoning_content + '\n</think>\n\n' }}
  {%- endif %}
  {{- message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %})";

inline std::unique_ptr<ChatTemplate> MakeTemplate(const std::string& source) {
  Result<std::unique_ptr<ChatTemplate>> made = ChatTemplate::Create(source, "<s>", "</s>");
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(*made);
}

inline ChatInput UserSays(const std::string& text) {
  ChatInput input;
  input.messages.push_back({{"role", "user"}, {"content", text}});
  return input;
}

inline JsonSchema Schema(const Json& schema) {
  Result<JsonSchema> read = JsonSchema::Read(schema, "schema");
  EXPECT_TRUE(read.ok()) << read.status().message();
  return std::move(*read);
}

inline ChatTool Tool(const Json& function) {
  Result<ChatTool> tool = ReadTool({{"type", "function"}, {"function", function}}, "tool");
  EXPECT_TRUE(tool.ok()) << tool.status().message();
  return std::move(*tool);
}

inline ChatTool WeatherTool() {
  return Tool(Json::parse(R"({"name": "get_weather", "description": "The weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}})"));
}

}  // namespace outrider
