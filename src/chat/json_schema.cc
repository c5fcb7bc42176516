#include <json-schema-to-grammar.h>

#include "chat/chat_template.h"
#include "chat/check.h"

namespace outrider {

Result<std::string> JsonSchemaToGrammar(const Json& schema) {
  if (const Status status = CheckSchema(schema, ""); !status.ok()) return status;
  try {
    return json_schema_to_grammar(common_json::parse(DumpJson(schema)));
  } catch (const std::exception& error) {
    return InvalidArgument(std::string("the schema cannot be used: ") + error.what());
  }
}

}  // namespace outrider
