#include "chat/json_schema.h"

#include <fmt/format.h>
#include <json-schema-to-grammar.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/log.h"
#include "chat/chat_template.h"
#include "chat/check.h"

namespace outrider {
namespace {

// Whether llama-common would take any string for this pattern. It tells nobody but standard error, at the end of
// build_grammar; so this asks from inside, by the rule it has made, and leaves before the end.
bool IsUnusable(const std::string& pattern) {
  struct Leave {};
  bool unusable = false;
  try {
    build_grammar([&](const common_grammar_builder& builder) {
      const Json schema = {{"type", "string"}, {"pattern", pattern}};
      const common_chat_schema_document document = common_chat_schema_from_json(common_json::parse(DumpJson(schema)));
      const std::string rule = builder.add_schema("probe", *document.root);
      // add_rule gives another name if the rule exists and is not the same.
      unusable = !rule.empty() && builder.add_rule(rule, "string") == rule;
      throw Leave();
    });
  } catch (const Leave&) {
  }
  return unusable;
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

template <size_t N>
bool Contains(const std::array<std::string_view, N>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

void RemoveUnusablePatterns(Json* node) {
  static constexpr std::array<std::string_view, 3> kMaps = {"properties", "$defs", "definitions"};
  static constexpr std::array<std::string_view, 4> kData = {"const", "enum", "default", "examples"};
  if (node->is_array()) {
    for (Json& item : *node) RemoveUnusablePatterns(&item);
  }
  if (!node->is_object()) return;
  for (const auto& [key, value] : node->items()) {
    if (Contains(kMaps, key) && value.is_object()) {
      for (Json& schema : value) RemoveUnusablePatterns(&schema);
    } else if (!Contains(kData, key)) {
      RemoveUnusablePatterns(&value);
    }
  }
  const auto pattern = node->find("pattern");
  if (pattern == node->end() || !pattern->is_string()) return;
  if (IsUnusable(pattern->get<std::string>())) MoveToDescription(node);
}

}  // namespace

Json WithoutUnusablePatterns(const Json& schema) {
  Json usable = schema;
  RemoveUnusablePatterns(&usable);
  return usable;
}

Result<std::string> JsonSchemaToGrammar(const Json& schema) {
  if (const Status status = CheckSchema(schema, ""); !status.ok()) return status;
  try {
    return json_schema_to_grammar(common_json::parse(DumpJson(WithoutUnusablePatterns(schema))));
  } catch (const std::exception& error) {
    return InvalidArgument(std::string("the schema cannot be used: ") + error.what());
  }
}

}  // namespace outrider
