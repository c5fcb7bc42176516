// JSON schemas of requests. This file is the only one that reads them, and so the only one that knows which of them
// llama-common accepts.
//
// A JsonSchema is read once, by the code that knows in which field of the request the schema stands, and is then
// carried to the place that needs the grammar. Nobody checks it or converts it again on the way. The grammar itself is
// made once: by ToGrammar() for endpoints without a chat template, by ToolCallGrammar() (tool_fallback.h) for templates
// that do not know tools, and otherwise by llama-common when it applies the template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/status.h"

struct common_chat_schema_document;  // llama-common's form of a schema

namespace outrider {

// Immutable and cheap to copy; copies may be used by several threads at once.
class JsonSchema {
 public:
  // kInvalidArgument naming `field` if no grammar can be made of the schema, or only at too high a cost.
  //
  // Some patterns are regular expressions that llama-common has no grammar for (not anchored, lookaround, …). It would
  // accept any string for those and say so on standard error for each conversion, at every log level, so that a client
  // could flood the log. Such a pattern is moved to the description instead, where the model can read it.
  static Result<JsonSchema> Read(const Json& schema, const std::string& field);

  static JsonSchema AnyObject();

  const Json& json() const { return *json_; }         // without the patterns that cannot be enforced
  const std::string& text() const { return *text_; }  // the same as text
  const common_chat_schema_document& document() const { return *document_; }

  uint64_t work() const { return work_; }  // of making a grammar of it, see schema_work.h

  std::string ToGrammar() const;  // GBNF; cannot fail, as Read refuses what has no grammar

 private:
  JsonSchema() = default;

  std::shared_ptr<const Json> json_;
  std::shared_ptr<const std::string> text_;
  std::shared_ptr<const common_chat_schema_document> document_;
  uint64_t work_ = 0;
};

}  // namespace outrider
