// Building a ChatInput turn by turn, for protocols whose conversations are lists of blocks or items rather than OpenAI
// chat messages.
//
// Turns of one role that follow each other become one, as Anthropic documents it and as templates that insist on
// alternating roles need it. `field` is where a value stands in the request ("messages[2].content[0]") and is named in
// errors.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "api/fields.h"
#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"

namespace outrider {

// "messages[2]", from "messages" and 2.
std::string ElementField(std::string_view list_field, size_t index);

// Like FieldReader::String, but absent or empty is an error.
void ReadRequiredString(const char* name, FieldReader* reader, std::string* out);

// kInvalidArgument unless `block` is an object with a string in "type", which is copied to `type`.
Status ReadBlockType(const Json& block, const std::string& field, std::string* type);

// The text of a block {"type": one of `types`, "text": …}.
Status ReadTextBlock(const Json& block, const std::string& field, std::initializer_list<std::string_view> types,
                     std::string* out);

// Text given as a string or as a list of such blocks; absent text (null) is "".
Status ReadText(const Json& value, const std::string& field, std::initializer_list<std::string_view> types,
                std::string_view separator, std::string* out);

// Reads a block that has a file and adds that to the conversation; its marker comes back, or "" if it is another block.
using ReadFileBlock = Result<std::string> (*)(const Json& block, const std::string& type, const std::string& field,
                                              ChatInput* input);

// The same with files.
Status ReadTextAndFiles(const Json& value, const std::string& field, std::initializer_list<std::string_view> types,
                        std::string_view separator, ReadFileBlock read_file, ChatInput* input, std::string* out);

// What stands between a role's texts: nothing for the assistant, whose texts are pieces of what it generated.
std::string_view TextSeparator(std::string_view role);

void AddTurn(std::string_view role, std::string_view text, ChatInput* input);
void AddToolCall(const ToolCall& call, ChatInput* input);
void AddReasoning(std::string_view text, ChatInput* input);  // of the assistant, before what it says
void AddToolResult(const std::string& call_id, const std::string& text, ChatInput* input);

// `field` is the place of the tool, and `parameters_key` the name that its schema has there.
Status AddTool(const std::string& name, const std::string& description, const Json& parameters,
               const std::string& field, const char* parameters_key, ChatInput* input);

// The answer must be a call of this tool. `field` is where the request names it.
Status RequireTool(const std::string& name, const std::string& field, ChatInput* input);
Status NotAmongTheTools(const std::string& name, const std::string& field);

// The answer must match the schema that `format` has under "schema".
Status ReadSchema(const Json& format, const std::string& field, ChatInput* input);

// PrepareChat for such an input. Errors name the field `conversation` where they would name a message of the ChatInput,
// which the client did not write.
Result<std::shared_ptr<const ChatParser>> PrepareTurns(const ChatInput& input, const char* conversation,
                                                       const ApiContext& context, GenerationRequest* request);

}  // namespace outrider
