// Chat: from a conversation to the model's prompt, and from the model's text back to a message with tool calls and
// reasoning.
//
// Wraps llama-common's Jinja engine, tool-call formats and JSON-schema grammars. Knows nothing of tokens or engines.
// ChatTemplate and ChatParser are immutable after construction and thread-safe. json_schema.h says who reads the
// schemas of a request, and who makes grammars of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/media_kind.h"
#include "base/status.h"
#include "chat/chat_tool.h"
#include "chat/json_schema.h"

namespace outrider {

enum class ToolChoice { kAuto, kRequired, kNone };

// Whether the answer goes on with the last message, which is the assistant's.
enum class Continuation {
  kAuto,       // if it is plain text
  kAlways,     // with whatever it has last; it is an error if there is nothing to go on with
  kContent,    // with its text
  kReasoning,  // with its reasoning
};

// A file that belongs to a conversation, such as a picture.
struct Attachment {
  MediaKind kind;
  std::string marker;                        // what stands for it in a message's text; nothing else has it
  std::shared_ptr<const std::string> bytes;  // of the file
  std::string field;                         // its place in the request, for errors
};

// A conversation in OpenAI's chat-completions shapes. Other protocols translate into it.
struct ChatInput {
  Json messages = Json::array();  // [{"role", "content", "tool_calls", "tool_call_id", ...}]
  std::vector<Attachment> attachments;
  std::vector<ChatTool> tools;  // which the model may call
  ToolChoice tool_choice = ToolChoice::kAuto;
  bool parallel_tool_calls = false;
  std::optional<JsonSchema> json_schema;  // the answer must match it; nothing = free
  std::string grammar;                    // GBNF the answer must match; "" = free
  bool add_generation_prompt = true;
  Continuation continuation = Continuation::kAuto;
  bool extract_reasoning = true;             // reasoning is told apart from the content
  int reasoning_budget = -1;                 // tokens that the model may think; -1 = no limit
  std::string reasoning_budget_message;      // what then ends its thinking, before the end itself
  Json template_arguments = Json::object();  // extra variables of the template ("chat_template_kwargs")
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON as text, as the model wrote it

  bool operator==(const ToolCall&) const = default;
};

struct ChatMessage {
  std::string content;
  std::string reasoning;
  std::vector<ToolCall> tool_calls;

  bool operator==(const ChatMessage&) const = default;
};

// Turns the text a model generates for one prompt back into a message.
class ChatParser {
 public:
  virtual ~ChatParser() = default;

  // `partial`: the text is still growing. Text that does not parse is returned as content: the user sees what the model
  // said.
  virtual ChatMessage Parse(const std::string& text, bool partial) const = 0;

  // True if the content is always the text as it is, so that a stream need not be parsed at all.
  virtual bool plain() const = 0;

  // The strings at which content and reasoning can end. While none of them appears, a text that is in the middle of its
  // content or reasoning stays there, and what is added to the text is added to the message as it is. Nothing if that
  // cannot be said of this format.
  virtual std::optional<std::vector<std::string>> markers() const { return std::nullopt; }
};

// What a lazy grammar waits for before it applies.
struct GrammarTrigger {
  enum class Kind { kWord, kPattern, kFullPattern } kind;
  std::string value;
};

struct ChatPrompt {
  std::string text;           // tokenise with SpecialTokens::kParse
  std::string grammar;        // GBNF; "" = none
  bool grammar_lazy = false;  // applies only after one of the triggers
  std::vector<GrammarTrigger> triggers;
  std::vector<std::string> preserved;  // control tokens the parser needs to see in the text
  std::string grammar_prefill;         // end of the prompt that the grammar counts as generated
  std::vector<std::string> stop;       // additional stop strings of the template
  std::string thinking_start;          // text with which the model begins to think; "" = not known to think
  std::vector<std::string> thinking_ends;
  bool thinking = false;  // the prompt ends while the model is thinking
  std::shared_ptr<const ChatParser> parser;
};

class ChatTemplate {
 public:
  // `source`: Jinja, or "" for ChatML. `bos`, `eos`: texts of those tokens ("" if none), which templates may print.
  // `arguments`: variables of the template that conversations may override.
  static Result<std::unique_ptr<ChatTemplate>> Create(const std::string& source, const std::string& bos,
                                                      const std::string& eos, const Json& arguments = Json::object());
  virtual ~ChatTemplate() = default;

  // A bad conversation (roles that the template refuses, for example) is kInvalidArgument naming the field.
  virtual Result<ChatPrompt> Apply(const ChatInput& input) const = 0;

  virtual const std::string& source() const = 0;

  // What the template itself can do, by llama.cpp's names ("supports_tools"). More works: what it cannot do is written
  // as text.
  virtual const std::map<std::string, bool>& abilities() const {
    static const std::map<std::string, bool> kNone;
    return kNone;
  }
};

}  // namespace outrider
