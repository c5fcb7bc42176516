#include "api/openai_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "api/fields.h"

namespace outrider {
namespace {

Status AppendPromptItem(const Json& item, bool first, const Tokenizer& tokenizer, std::vector<Token>* tokens) {
  if (item.is_string()) {
    const std::vector<Token> more =
        tokenizer.Tokenize(item.get_ref<const std::string&>(), /*add_bos=*/first, SpecialTokens::kParse);
    tokens->insert(tokens->end(), more.begin(), more.end());
    return {};
  }
  const bool is_token = item.is_number_integer() && item >= 0 && item < tokenizer.vocabulary_size();
  if (!is_token) {
    return InvalidArgument(fmt::format("{} is not text nor a token of this model, whose ids are 0 to {}",
                                       DumpJson(item), tokenizer.vocabulary_size() - 1),
                           "prompt");
  }
  tokens->push_back(item.get<Token>());
  return {};
}

}  // namespace

OpenAiEnvelope::OpenAiEnvelope(const char* id_prefix, std::string model)
    : id_(MakeId(id_prefix)), created_(std::time(nullptr)), model_(std::move(model)) {}

Json OpenAiEnvelope::Make(const char* object, Json choice) const {
  Json choices = Json::array();
  if (!choice.is_null()) choices.push_back(std::move(choice));
  return {{"id", id_},
          {"object", object},
          {"created", created_},
          {"model", model_},
          {"system_fingerprint", "outrider-0.1"},
          {"choices", std::move(choices)}};
}

Json OpenAiUsage(const GenerationTimings& timings) {
  const int prompt = timings.cached_tokens + timings.prompt_tokens;
  return {{"prompt_tokens", prompt},
          {"completion_tokens", timings.generated_tokens},
          {"total_tokens", prompt + timings.generated_tokens},
          {"prompt_tokens_details", {{"cached_tokens", timings.cached_tokens}}}};
}

Status ReadStreamFields(const Json& body, bool* stream, bool* include_usage) {
  FieldReader fields(body);
  fields.Bool("stream", stream);
  Json options = Json::object();
  fields.Object("stream_options", &options);
  if (!fields.status().ok()) return fields.status();
  FieldReader option_fields(options, "stream_options.");
  option_fields.Bool("include_usage", include_usage);
  return option_fields.status();
}

Status ReadPrompt(const Json& body, const ApiContext& context, GenerationRequest* request) {
  const FieldReader fields(body);
  const Json& prompt = fields.At("prompt");
  if (prompt.is_null()) return InvalidArgument("is required", "prompt");
  if (!prompt.is_string() && !prompt.is_array()) {
    return InvalidArgument("must be a string or a list of token ids", "prompt");
  }
  const Json items = prompt.is_array() ? prompt : Json::array({prompt});
  const bool several = items.size() > 1 && std::all_of(items.begin(), items.end(), [](const Json& item) {
                         return item.is_string() || item.is_array();
                       });
  if (several) return InvalidArgument("only one prompt per request is supported", "prompt");
  request->prompt.clear();
  // [[1, 2, 3]] is OpenAI's list of one prompt of tokens.
  const Json& tokens = items.size() == 1 && items[0].is_array() ? items[0] : items;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Status status = AppendPromptItem(tokens[i], i == 0, context.tokenizer, &request->prompt);
    if (!status.ok()) return status;
  }
  return CheckPromptFits(request->prompt.size(), context, "prompt");
}

}  // namespace outrider
