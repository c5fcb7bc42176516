#include "chat/llama_chat_parser.h"

#include <chat-peg-parser.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

namespace outrider {
namespace {

// llama-common recurses into nested values. A client can make a model write thousands of brackets, and at a few
// thousand the stack overflows.
constexpr int kMaxNesting = 256;

// Whether values may nest more deeply than kMaxNesting in `text`. It is not known where in the text a parser begins to
// read values, and whether it takes single quotes for the quotes of a string. So each of the variables is one state
// that a parser can be in, and has the greatest depth that a parser in this state can have reached.
bool NestsTooDeeply(const std::string& text) {
  constexpr int kNobody = -1;                    // no parser can be in this state
  int outside = 0;                               // of strings; never kNobody, because a parser may begin anywhere
  int in_double = kNobody, in_single = kNobody;  // inside a string, by its quotes
  int after_backslash_double = kNobody, after_backslash_single = kNobody;
  for (const char c : text) {
    const int escaped_double = std::exchange(after_backslash_double, kNobody);
    const int escaped_single = std::exchange(after_backslash_single, kNobody);
    if (c == '[' || c == '{') {
      if (++outside > kMaxNesting) return true;
    } else if (c == ']' || c == '}') {
      outside = std::max(outside - 1, 0);
    } else if (c == '\\') {
      after_backslash_double = std::exchange(in_double, kNobody);
      after_backslash_single = std::exchange(in_single, kNobody);
    } else if (c == '"') {
      const int leaving = std::exchange(in_double, outside);
      outside = std::max(leaving, 0);
    } else if (c == '\'') {
      // In JSON this is not a quote, so a parser may also stay outside.
      const int leaving = std::exchange(in_single, outside);
      outside = std::max(leaving, outside);
    }
    in_double = std::max(in_double, escaped_double);
    in_single = std::max(in_single, escaped_single);
  }
  return false;
}

ChatMessage FromCommon(common_chat_msg parsed) {
  ChatMessage message;
  message.content = parsed.content_parts.empty() ? std::move(parsed.content) : parsed.render_content("");
  message.reasoning = std::move(parsed.reasoning_content);
  for (common_chat_tool_call& call : parsed.tool_calls) {
    message.tool_calls.push_back({std::move(call.id), std::move(call.name), std::move(call.arguments)});
  }
  return message;
}

// Collects at which strings the text that one parser of an arena consumes may end.
class MarkerFinder {
 public:
  explicit MarkerFinder(const common_peg_arena& arena) : arena_(arena) {}

  // False if the parser consumes text in another way than "everything until one of these strings".
  bool Visit(common_peg_parser_id id) {
    if (!visited_.insert(id).second) return true;
    return std::visit([this](const auto& parser) { return VisitParser(parser); }, arena_.get(id));
  }

  std::vector<std::string> Take() { return {markers_.begin(), markers_.end()}; }

 private:
  bool VisitParser(const common_peg_until_parser& parser) {
    markers_.insert(parser.delimiters.begin(), parser.delimiters.end());
    return !markers_.contains("");
  }
  bool VisitParser(const common_peg_ref_parser& parser) { return Visit(arena_.get_rule(parser.name)); }
  bool VisitParser(const common_peg_sequence_parser& parser) { return VisitAll(parser.children); }
  bool VisitParser(const common_peg_choice_parser& parser) { return VisitAll(parser.children); }
  bool VisitParser(const common_peg_repetition_parser& parser) { return Visit(parser.child); }
  bool VisitParser(const common_peg_rule_parser& parser) { return Visit(parser.child); }
  bool VisitParser(const common_peg_atomic_parser& parser) { return Visit(parser.child); }
  bool VisitParser(const common_peg_tag_parser& parser) { return Visit(parser.child); }
  bool VisitParser(const common_peg_ac_parser& parser) { return Visit(parser.child); }
  bool VisitParser(const common_peg_literal_parser&) { return true; }
  bool VisitParser(const common_peg_space_parser&) { return true; }
  bool VisitParser(const common_peg_epsilon_parser&) { return true; }
  template <typename Other>
  bool VisitParser(const Other&) {
    return false;
  }

  bool VisitAll(const std::vector<common_peg_parser_id>& ids) {
    return std::all_of(ids.begin(), ids.end(), [this](common_peg_parser_id id) { return Visit(id); });
  }

  const common_peg_arena& arena_;
  std::set<common_peg_parser_id> visited_;
  std::set<std::string> markers_;
};

void DropPrefix(const std::string& prefix, std::string* text) {
  if (text->compare(0, prefix.size(), prefix) == 0) text->erase(0, prefix.size());
}

}  // namespace

LlamaChatParser::LlamaChatParser(const common_chat_params& params, bool structured, bool extract_reasoning)
    : params_(params) {
  params_.reasoning_format = extract_reasoning ? COMMON_REASONING_FORMAT_AUTO : COMMON_REASONING_FORMAT_NONE;
  params_.parse_tool_calls = structured;
  if (!params.parser.empty()) params_.parser.load(params.parser);
  try {
    prefill_ = FromCommon(common_chat_parse("", /*is_partial=*/true, params_));
  } catch (const std::exception&) {
    prefill_ = {};  // nothing to recognise in an empty answer
  }
  plain_ = IsPlain(params, structured);
}

ChatMessage LlamaChatParser::Parse(const std::string& text, bool partial) const {
  ChatMessage message;
  if (!plain_ && !NestsTooDeeply(text)) {
    try {
      return ParseOrThrow(text, partial);
    } catch (const std::exception&) {
      // Falls through: the model did not keep to its format.
    }
  }
  message.content = text;
  return message;
}

std::optional<std::vector<std::string>> LlamaChatParser::markers() const {
  MarkerFinder finder(params_.parser);
  for (common_peg_parser_id id = 0; id < params_.parser.size(); ++id) {
    const auto* tag = std::get_if<common_peg_tag_parser>(&params_.parser.get(id));
    if (tag == nullptr) continue;
    const bool is_text = tag->tag == common_chat_peg_builder::CONTENT || tag->tag == common_chat_peg_builder::REASONING;
    if (is_text && !finder.Visit(tag->child)) return std::nullopt;
  }
  return finder.Take();
}

ChatMessage LlamaChatParser::ParseOrThrow(const std::string& text, bool partial) const {
  ChatMessage message = FromCommon(common_chat_parse(text, partial, params_));
  DropPrefix(prefill_.content, &message.content);
  DropPrefix(prefill_.reasoning, &message.reasoning);
  return message;
}

bool LlamaChatParser::IsPlain(const common_chat_params& params, bool structured) const {
  if (structured) return false;
  const bool extracts = params_.reasoning_format != COMMON_REASONING_FORMAT_NONE;
  if (extracts && (params.supports_thinking || !params.thinking_start_tag.empty())) return false;
  // Some formats wrap or trim even plain content; a text with everything they might touch shows it.
  const std::string probe = " \n<a>x</a> {\"b\": [1]} ```c``` \n";
  try {
    return ParseOrThrow(probe, /*partial=*/false) == ChatMessage{probe, "", {}};
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace outrider
