#include "chat/chat_template.h"

#include <chat.h>
#include <fmt/format.h>
#include <log.h>

#include <map>
#include <mutex>

#include "base/utf8.h"
#include "chat/check.h"
#include "chat/llama_chat_parser.h"
#include "chat/tool_fallback.h"

namespace outrider {
namespace {

constexpr size_t kMaxErrorBytes = 400;  // template errors quote the template

std::string Shorten(std::string message) {
  if (message.size() > kMaxErrorBytes) {
    message.resize(kMaxErrorBytes);
    message.resize(message.size() - IncompleteUtf8Tail(message));
    message += " ...";
  }
  return message;
}

common_chat_tool_choice ToCommon(ToolChoice choice) {
  switch (choice) {
    case ToolChoice::kAuto:
      return COMMON_CHAT_TOOL_CHOICE_AUTO;
    case ToolChoice::kRequired:
      return COMMON_CHAT_TOOL_CHOICE_REQUIRED;
    case ToolChoice::kNone:
      return COMMON_CHAT_TOOL_CHOICE_NONE;
  }
  return COMMON_CHAT_TOOL_CHOICE_AUTO;
}

// The messages in the one shape that llama-common reads: no nulls where it wants strings, no roles it does not know,
// and every call with its type.
Json NormalizeMessages(const Json& messages) {
  Json normalized = messages;
  for (Json& message : normalized) {
    if (message["role"] == "function") message["role"] = "tool";
    for (const char* key : {"reasoning_content", "name", "tool_call_id", "tool_calls"}) {
      if (message.contains(key) && message[key].is_null()) message.erase(key);
    }
    if (!message.contains("content")) message["content"] = "";
    if (!message.contains("tool_calls")) continue;
    for (Json& call : message["tool_calls"]) {
      call["type"] = "function";
      if (call.contains("id") && call["id"].is_null()) call.erase("id");
    }
  }
  return normalized;
}

bool IsAssistantText(const common_chat_msg& message) {
  return message.role == "assistant" && message.tool_calls.empty();
}

bool HasText(const common_chat_msg& message) {
  return !message.render_content().empty() || !message.reasoning_content.empty();
}

common_chat_continuation ToCommon(Continuation how) {
  switch (how) {
    case Continuation::kContent:
      return COMMON_CHAT_CONTINUATION_CONTENT;
    case Continuation::kReasoning:
      return COMMON_CHAT_CONTINUATION_REASONING;
    case Continuation::kAuto:
    case Continuation::kAlways:
      break;
  }
  return COMMON_CHAT_CONTINUATION_AUTO;
}

// A conversation whose last message is text of the assistant asks for more of that text, unless the request says
// otherwise.
void ContinueLastMessage(Continuation how, common_chat_templates_inputs* inputs) {
  if (how != Continuation::kAuto) {
    inputs->continue_final_message = ToCommon(how);
    inputs->add_generation_prompt = false;
    return;
  }
  if (!inputs->add_generation_prompt || !IsAssistantText(inputs->messages.back())) return;
  if (HasText(inputs->messages.back())) {
    inputs->continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
    inputs->add_generation_prompt = false;
  } else if (inputs->messages.size() > 1) {
    inputs->messages.pop_back();
  }
}

common_chat_tool ToCommon(const ChatTool& tool) {
  const bool described = tool.function.contains("description") && tool.function["description"].is_string();
  const char* no_parameters = tool.function.contains("parameters") ? "null" : "{}";
  return {.name = tool.name(),
          .description = described ? tool.function["description"].get<std::string>() : "",
          .parameters = tool.parameters ? tool.parameters->text() : no_parameters};
}

common_chat_templates_inputs ToCommon(const ChatInput& input) {
  common_chat_templates_inputs inputs;
  inputs.messages = common_chat_msgs_parse_oaicompat(common_json::parse(DumpJson(NormalizeMessages(input.messages))));
  for (const ChatTool& tool : input.tools) inputs.tools.push_back(ToCommon(tool));
  inputs.tool_choice = ToCommon(input.tool_choice);
  inputs.parallel_tool_calls = input.parallel_tool_calls;
  inputs.json_schema = input.json_schema ? input.json_schema->text() : "";
  inputs.grammar = input.grammar;
  inputs.add_generation_prompt = input.add_generation_prompt;
  inputs.reasoning_format = input.extract_reasoning ? COMMON_REASONING_FORMAT_AUTO : COMMON_REASONING_FORMAT_NONE;
  for (const auto& [name, value] : input.template_arguments.items()) {
    inputs.chat_template_kwargs[name] = DumpJson(value);
    if (name == "enable_thinking") inputs.enable_thinking = value.get<bool>();
  }
  ContinueLastMessage(input.continuation, &inputs);
  return inputs;
}

GrammarTrigger FromCommon(const common_grammar_trigger& trigger) {
  switch (trigger.type) {
    case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN:
      return {GrammarTrigger::Kind::kPattern, trigger.value};
    case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL:
      return {GrammarTrigger::Kind::kFullPattern, trigger.value};
    case COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN:  // made only where a vocabulary is known; its value is the word
    case COMMON_GRAMMAR_TRIGGER_TYPE_WORD:
      break;
  }
  return {GrammarTrigger::Kind::kWord, trigger.value};
}

bool IsAssistants(const Json& message) {
  return message["role"] == "assistant";
}

// Whether the conversation ends with something that the answer can follow or go on with.
Status CheckEnd(const ChatInput& input) {
  const Json& messages = input.messages;
  const std::string last = fmt::format("messages[{}]", messages.size() - 1);
  if (input.continuation != Continuation::kAuto) {
    if (!IsAssistants(messages.back())) {
      return InvalidArgument("must be the assistant's if it is to be continued (continue_final_message)", last);
    }
    if (messages.back().contains("tool_calls") && !messages.back()["tool_calls"].empty()) {
      return InvalidArgument("has tool calls, after which nothing can be continued (continue_final_message)", last);
    }
  }
  if (input.add_generation_prompt && messages.size() > 1 && IsAssistants(messages.back()) &&
      IsAssistants(messages[messages.size() - 2])) {
    return InvalidArgument(
        "is the second message of the assistant at the end; which of the two is to be continued? Join them", last);
  }
  return {};
}

bool CallsTools(const ChatInput& input) {
  return !input.tools.empty() && input.tool_choice != ToolChoice::kNone;
}

// What the fallback's template gets: its grammar is not used, and its parser takes any JSON as arguments, so that
// llama-common need not convert the schemas of the parameters.
ChatInput WithoutParameters(ChatInput input) {
  for (ChatTool& tool : input.tools) {
    tool.parameters.reset();
    tool.function.erase("parameters");
  }
  return input;
}

// Everything but the prompt's text.
void SetAnswerFormat(const common_chat_params& params, const ChatInput& input, ChatPrompt* prompt) {
  prompt->grammar = params.grammar;
  prompt->grammar_lazy = params.grammar_lazy;
  // Grammars made for a template begin with its generation prompt; a lazy one begins at its trigger instead.
  if (!params.grammar.empty() && !params.grammar_lazy) prompt->grammar_prefill = params.generation_prompt;
  if (params.grammar.empty()) prompt->grammar = input.grammar;
  for (const common_grammar_trigger& trigger : params.grammar_triggers) prompt->triggers.push_back(FromCommon(trigger));
  prompt->preserved = params.preserved_tokens;
  prompt->parser =
      std::make_shared<LlamaChatParser>(params, CallsTools(input) || input.json_schema, input.extract_reasoning);
}

void SetThinking(const common_chat_params& params, ChatPrompt* prompt) {
  prompt->thinking_start = params.thinking_start_tag;
  if (prompt->thinking_start.empty()) return;
  const size_t began = params.generation_prompt.rfind(prompt->thinking_start);
  prompt->thinking = began != std::string::npos;
  for (const std::string& end : params.thinking_end_tags) {
    if (end.empty()) continue;
    prompt->thinking_ends.push_back(end);
    const size_t ended = params.generation_prompt.rfind(end);
    if (ended != std::string::npos && ended > began) prompt->thinking = false;
  }
}

// One thread at a time: templates may ask for the date, which llama-common takes from std::localtime's one buffer.
common_chat_params ApplyAlone(const common_chat_templates* templates, const common_chat_templates_inputs& inputs) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return common_chat_templates_apply(templates, inputs);
}

class LlamaChatTemplate : public ChatTemplate {
 public:
  LlamaChatTemplate(common_chat_templates_ptr own, common_chat_templates_ptr tool_fallback, Json arguments)
      : own_(std::move(own)),
        tool_fallback_(std::move(tool_fallback)),
        arguments_(std::move(arguments)),
        source_(common_chat_templates_source(own_.get())),
        abilities_(common_chat_templates_get_caps(own_.get())),
        knows_tools_(abilities_.at("supports_tools") || abilities_.at("supports_tool_calls")) {}

  Result<ChatPrompt> Apply(const ChatInput& input) const override {
    if (const Status status = CheckChatInput(input); !status.ok()) return status;
    if (const Status status = CheckEnd(input); !status.ok()) return status;
    try {
      ChatInput usable = input;
      usable.template_arguments = arguments_;
      usable.template_arguments.update(input.template_arguments);
      // If the answer must be a call, there will be no text for the schema to apply to.
      if (input.tool_choice == ToolChoice::kRequired) usable.json_schema.reset();
      return knows_tools_ ? Render(usable) : RenderToolsAsText(usable);
    } catch (const std::exception& error) {
      return InvalidArgument(fmt::format("the chat template refuses this conversation: {}", Shorten(error.what())),
                             "messages");
    }
  }

  const std::string& source() const override { return source_; }
  const std::map<std::string, bool>& abilities() const override { return abilities_; }

 private:
  ChatPrompt Render(const ChatInput& input) const {
    const common_chat_params params = ApplyAlone(own_.get(), ToCommon(input));
    ChatPrompt prompt;
    prompt.text = params.prompt;
    prompt.stop = params.additional_stops;
    SetThinking(params, &prompt);
    SetAnswerFormat(params, input, &prompt);
    return prompt;
  }

  ChatPrompt RenderToolsAsText(const ChatInput& input) const {
    const bool calls_tools = CallsTools(input);
    ChatInput plain = input;
    plain.messages = WriteToolsAsText(input.messages, calls_tools ? input.tools : std::vector<ChatTool>());
    plain.tools.clear();
    plain.tool_choice = ToolChoice::kAuto;
    ChatPrompt prompt = Render(plain);
    if (!calls_tools || input.json_schema) return prompt;
    SetAnswerFormat(ApplyAlone(tool_fallback_.get(), ToCommon(WithoutParameters(input))), input, &prompt);
    prompt.grammar = ToolCallGrammar(input.tools, input.parallel_tool_calls);
    prompt.grammar_lazy = input.tool_choice == ToolChoice::kAuto;
    prompt.grammar_prefill = "";
    prompt.triggers = {{GrammarTrigger::Kind::kWord, kToolCallTrigger}};
    return prompt;
  }

  const common_chat_templates_ptr own_;
  const common_chat_templates_ptr tool_fallback_;
  const Json arguments_;  // defaults
  const std::string source_;
  const std::map<std::string, bool> abilities_;
  const bool knows_tools_;
};

// llama-common logs what it also reports as exceptions; its logger must be set before threads use it.
void SilenceCommonLog() {
  static std::once_flag once;
  std::call_once(once, [] { common_log_set_verbosity_thold(LOG_LEVEL_OUTPUT); });
}

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::Create(const std::string& source, const std::string& bos,
                                                           const std::string& eos, const Json& arguments) {
  SilenceCommonLog();
  if (const Status status = CheckTemplateArguments(arguments); !status.ok()) return status;
  try {
    auto own = common_chat_templates_init(/*model=*/nullptr, source.empty() ? "chatml" : source, bos, eos);
    auto tool_fallback = common_chat_templates_init(/*model=*/nullptr, kToolTemplate, bos, eos);
    return std::unique_ptr<ChatTemplate>(
        std::make_unique<LlamaChatTemplate>(std::move(own), std::move(tool_fallback), arguments));
  } catch (const std::exception& error) {
    return InvalidArgument(fmt::format("the chat template cannot be used: {}", Shorten(error.what())));
  }
}

}  // namespace outrider
