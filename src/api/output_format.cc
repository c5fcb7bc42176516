#include "api/output_format.h"

#include <fmt/format.h>

#include <string_view>

#include "api/fields.h"

namespace outrider {
namespace {

Status CheckConverts(const Json& schema, const std::string& field) {
  const Result<std::string> grammar = JsonSchemaToGrammar(schema);
  return grammar.ok() ? Status() : InvalidArgument(grammar.status().message(), field);
}

// Sets *schema, and *field to the name it was found under; leaves both if the format is plain text.
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
  input->json_schema = std::move(schema);
  return CheckConverts(input->json_schema, schema_field);
}

Status SetGrammar(const std::string& gbnf, const Json& json_schema, GenerationRequest* request) {
  request->sampling.grammar = {};
  if (json_schema.is_null()) {
    request->sampling.grammar.text = gbnf;
    return {};
  }
  Result<std::string> grammar = JsonSchemaToGrammar(json_schema);
  if (!grammar.ok()) return InvalidArgument(grammar.status().message(), "json_schema");
  request->sampling.grammar.text = std::move(*grammar);
  return {};
}

}  // namespace outrider
