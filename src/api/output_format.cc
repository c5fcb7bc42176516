#include "api/output_format.h"

#include <fmt/format.h>

#include <string_view>

#include "api/fields.h"

namespace outrider {
namespace {

// Sets *schema, and *field to the name it was found under; leaves both unchanged if the format is plain text.
Status ReadResponseFormat(const Json& format, Json* schema, std::string* field) {
  FieldReader fields(format, "response_format.");
  std::string type;
  fields.String("type", &type);
  if (type == "json_object") {
    *schema = Json::object();
    *field = "response_format.schema";
    fields.Object("schema", schema);
  } else if (type == "json_schema") {
    Json wrapper;
    fields.Object("json_schema", &wrapper);
    if (fields.status().ok() && wrapper.is_null()) fields.Fail("json_schema", "is required for type json_schema");
    if (!fields.status().ok()) return fields.status();
    FieldReader inner(wrapper, "response_format.json_schema.");
    *field = "response_format.json_schema.schema";
    inner.Object("schema", schema);
    if (!inner.Has("schema")) inner.Fail("schema", "is required");
    return inner.status();
  } else if (type != "text") {
    fields.Fail("type", "must be \"text\", \"json_object\" or \"json_schema\"");
  }
  return fields.status();
}

}  // namespace

Status ReadOutputFormat(const Json& body, ChatInput* input) {
  FieldReader fields(body);
  Json schema;
  std::string schema_field = "json_schema";
  fields.Object("json_schema", &schema);
  fields.String("grammar", &input->grammar);
  if (!fields.status().ok()) return fields.status();
  if (fields.Has("response_format")) {
    if (const Status status = ReadResponseFormat(fields.At("response_format"), &schema, &schema_field); !status.ok()) {
      return status;
    }
  }
  if (schema.is_null()) return {};
  if (!input->grammar.empty()) return InvalidArgument("cannot be combined with a JSON schema", "grammar");
  if (schema.empty()) schema["type"] = "object";  // no schema: any object
  Result<JsonSchema> read = JsonSchema::Read(schema, schema_field);
  if (!read.ok()) return read.status();
  input->json_schema = std::move(*read);
  return {};
}

void SetGrammar(const ChatInput& format, GenerationRequest* request) {
  if (!format.json_schema && format.grammar.empty()) return;  // the server's default, if there is one
  request->sampling.grammar = {};
  request->sampling.grammar.text = format.json_schema ? format.json_schema->ToGrammar() : format.grammar;
}

}  // namespace outrider
