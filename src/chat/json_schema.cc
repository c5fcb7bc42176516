#include "chat/json_schema.h"

#include <fmt/format.h>
#include <json-schema-to-grammar.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "chat/check.h"
#include "chat/schema_work.h"

namespace outrider {
namespace {

template <size_t N>
bool Contains(const std::array<std::string_view, N>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Calls `visit` for every object in `node` that is a schema with a pattern.
void ForEachPattern(Json* node, const std::function<void(Json*)>& visit) {
  static constexpr std::array<std::string_view, 3> kMaps = {"properties", "$defs", "definitions"};
  static constexpr std::array<std::string_view, 4> kData = {"const", "enum", "default", "examples"};
  if (node->is_array()) {
    for (Json& item : *node) ForEachPattern(&item, visit);
  }
  if (!node->is_object()) return;
  for (const auto& [key, value] : node->items()) {
    if (Contains(kMaps, key) && value.is_object()) {
      for (Json& schema : value) ForEachPattern(&schema, visit);
    } else if (!Contains(kData, key)) {
      ForEachPattern(&value, visit);
    }
  }
  const auto pattern = node->find("pattern");
  if (pattern != node->end() && pattern->is_string()) visit(node);
}

// What llama-common does with the patterns of a schema, apart from those it makes a grammar of.
struct PatternProblems {
  std::set<std::string> judged;                // all that were looked at
  std::set<std::string> unenforceable;         // it would accept any string
  std::map<std::string, std::string> invalid;  // no regular expressions; to what is wrong with them
};

// That a pattern is unenforceable is said only on standard error, at the end of build_grammar. So this looks at the
// rule that was made for the pattern, and leaves build_grammar before its end; an exception is the only way to do that.
void Judge(const std::string& pattern, PatternProblems* problems) {
  struct Leave {};
  if (pattern.empty() || !problems->judged.insert(pattern).second) return;
  try {
    build_grammar([&](const common_grammar_builder& builder) {
      common_chat_schema_string string;
      string.pattern = pattern;
      const std::string rule = builder.add_schema("pattern", string);
      // add_rule returns another name if the rule exists and differs. For an invalid pattern there is no rule.
      if (!rule.empty() && builder.add_rule(rule, "string") == rule) throw Leave();
    });
  } catch (const Leave&) {
    problems->unenforceable.insert(pattern);
  } catch (const std::exception& error) {
    problems->invalid[pattern] = error.what();
  }
}

void MoveToDescription(Json* node) {
  const std::string pattern = (*node)["pattern"].get<std::string>();
  LogDebug("a schema's pattern is not enforced: {}", pattern);
  std::string description = fmt::format("pattern: {}", pattern);
  if (node->contains("description") && (*node)["description"].is_string()) {
    description = fmt::format("{} ({})", (*node)["description"].get<std::string>(), description);
  }
  (*node)["description"] = std::move(description);
  node->erase("pattern");
  // Where no type is given, a pattern says that the value is a string; so does this.
  if (!node->contains("minLength")) (*node)["minLength"] = 0;
}

// Moves the unenforceable patterns of `schema` to the descriptions.
PatternProblems SettlePatterns(Json* schema) {
  PatternProblems problems;
  ForEachPattern(schema, [&](Json* node) { Judge((*node)["pattern"].get<std::string>(), &problems); });
  ForEachPattern(schema, [&](Json* node) {
    if (problems.unenforceable.contains((*node)["pattern"].get<std::string>())) MoveToDescription(node);
  });
  return problems;
}

template <typename T>
const T& As(const common_chat_schema& node) {
  return static_cast<const T&>(node);
}

// Throws if a string in `node` has an invalid pattern. Not every pattern in a schema says something about a string, and
// those that do not are ignored; and a reference may lead to one that looked like data until now.
void RefusePatterns(const common_chat_schema& node, PatternProblems* problems) {
  const auto refuse_all = [&](const std::vector<common_chat_schema_ptr>& nodes) {
    for (const common_chat_schema_ptr& child : nodes) RefusePatterns(*child, problems);
  };
  switch (node.kind()) {
    case common_chat_schema::KIND_STRING: {
      const std::string& pattern = As<common_chat_schema_string>(node).pattern;
      Judge(pattern, problems);
      const auto found = problems->invalid.find(pattern);
      if (found != problems->invalid.end()) throw std::invalid_argument(found->second);
      break;
    }
    case common_chat_schema::KIND_ANY_OF:
      return refuse_all(As<common_chat_schema_any_of>(node).children);
    case common_chat_schema::KIND_ALL_OF:
      return refuse_all(As<common_chat_schema_all_of>(node).children);
    case common_chat_schema::KIND_TUPLE:
      return refuse_all(As<common_chat_schema_tuple>(node).items);
    case common_chat_schema::KIND_ARRAY:
      return RefusePatterns(*As<common_chat_schema_array>(node).items, problems);
    case common_chat_schema::KIND_OBJECT: {
      const auto& object = As<common_chat_schema_object>(node);
      for (const common_chat_schema_property& property : object.properties) RefusePatterns(*property.schema, problems);
      if (object.additional_properties) RefusePatterns(*object.additional_properties, problems);
      break;
    }
    default:  // has no parts; the targets of references are visited with the document
      break;
  }
}

// An invalid pattern is the only thing that llama-common does not notice when it reads a schema, but later, when it
// makes the grammar.
void RefusePatterns(const common_chat_schema_document& document, PatternProblems* problems) {
  RefusePatterns(*document.root, problems);
  for (const auto& [name, target] : document.refs) RefusePatterns(*target, problems);
}

// llama-common would follow a circle of references that lead to nothing but references until the stack overflows.
void RefuseCircles(const common_chat_schema_document& document) {
  for (const auto& [name, target] : document.refs) {
    const common_chat_schema* node = target.get();
    for (size_t steps = 0; node->kind() == common_chat_schema::KIND_REF; ++steps) {
      if (steps > document.refs.size()) throw std::invalid_argument(fmt::format("{} is a reference to itself", name));
      node = As<common_chat_schema_ref>(*node).target;
    }
  }
}

}  // namespace

Result<JsonSchema> JsonSchema::Read(const Json& schema, const std::string& field) {
  if (const Status status = CheckSchema(schema, field); !status.ok()) return status;
  try {
    JsonSchema read;
    Json json = schema;
    PatternProblems problems = SettlePatterns(&json);
    read.text_ = std::make_shared<const std::string>(DumpJson(json));
    read.json_ = std::make_shared<const Json>(std::move(json));
    read.document_ = std::make_shared<const common_chat_schema_document>(
        common_chat_schema_from_json(common_json::parse(*read.text_)));
    RefuseCircles(*read.document_);
    read.work_ = SchemaWork(*read.document_);
    if (read.work_ > kMaxSchemaWork) throw std::invalid_argument("it has too many properties");
    RefusePatterns(*read.document_, &problems);
    return read;
  } catch (const std::exception& error) {
    return InvalidArgument(fmt::format("the schema cannot be used: {}", error.what()), field);
  }
}

JsonSchema JsonSchema::AnyObject() {
  return *Read({{"type", "object"}}, "");
}

std::string JsonSchema::ToGrammar() const {
  return json_schema_to_grammar(*document_);
}

}  // namespace outrider
