// The chat template of a model.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "chat/chat_template.h"
#include "engine/llama/llama_model.h"

namespace outrider {

// `source`: Jinja; "" = the template in the model's file. `arguments`: variables that it may use.
Result<std::unique_ptr<ChatTemplate>> ChatTemplateOf(const LlamaModel& model, const std::string& source,
                                                     const Json& arguments);

}  // namespace outrider
