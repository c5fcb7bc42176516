// What the answer must look like: response_format, json_schema, grammar. A schema that no grammar can be made of is
// refused here, under the name of the field it came in.
#pragma once

#include <string>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

// "response_format" (text, json_object, json_schema) and llama.cpp's "json_schema" and "grammar" into `input`.
Status ReadOutputFormat(const Json& body, ChatInput* input);

// Sets request->sampling.grammar from GBNF text or JSON schema for endpoints without a chat template.
Status SetGrammar(const std::string& gbnf, const Json& json_schema, GenerationRequest* request);

}  // namespace outrider
