#include "api/reasoning_fields.h"

#include <algorithm>
#include <limits>

#include "api/fields.h"

namespace outrider {

Status ReadReasoningFields(const Json& body, const ApiContext& context, ChatInput* input) {
  FieldReader fields(body);
  std::string format = context.reasoning.format;
  bool stream = false;
  fields.String("reasoning_format", &format);
  fields.Bool("stream", &stream);
  if (std::find(std::begin(kReasoningFormats), std::end(kReasoningFormats), format) == std::end(kReasoningFormats)) {
    fields.Fail("reasoning_format", "must be \"auto\", \"none\", \"deepseek\" or \"deepseek-legacy\"");
  }
  input->extract_reasoning = format != "none" && !(stream && format == "deepseek-legacy");

  for (const char* name : {"thinking_budget_tokens", "reasoning_budget_tokens"}) {
    fields.Int(name, -1, std::numeric_limits<int>::max(), &input->reasoning_budget);
  }
  if (input->reasoning_budget < 0) input->reasoning_budget = context.reasoning.budget;
  input->reasoning_budget_message = context.reasoning.budget_message;
  fields.String("reasoning_budget_message", &input->reasoning_budget_message);
  return fields.status();
}

}  // namespace outrider
