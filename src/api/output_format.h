// What the answer must look like: response_format, json_schema, grammar.
#pragma once

#include <string>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

// Reads "response_format" (text, json_object, json_schema) and llama.cpp's "json_schema" and "grammar" into `input`. A
// schema of which no grammar can be made is refused under the name of the field it came in.
Status ReadOutputFormat(const Json& body, ChatInput* input);

// Sets request->sampling.grammar from what ReadOutputFormat read, for endpoints without a chat template.
void SetGrammar(const ChatInput& format, GenerationRequest* request);

}  // namespace outrider
