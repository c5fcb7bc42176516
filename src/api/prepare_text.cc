// From a text or tokens to a request of the scheduler.
#include <fmt/format.h>

#include <algorithm>

#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/output_format.h"
#include "api/prepare.h"
#include "api/token_list.h"

namespace outrider {
namespace {

constexpr const char* kField = "prompt";

bool IsPrompt(const Json& item) {
  return item.is_string() || item.is_array();
}

// `items`: texts and token ids; the beginning-of-text token is put before a text that comes first.
Result<std::vector<Token>> ReadItems(const Json& items, const ApiContext& context) {
  const Tokenizer& tokenizer = context.tokenizer;
  const auto room = static_cast<size_t>(context.sequence_length);
  std::vector<Token> tokens;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_string()) {
      const auto& text = items[i].get_ref<const std::string&>();
      // A long list of texts is not tokenised to its end if it does not fit.
      if (tokens.size() > room) return CheckPromptFits(tokens.size(), context, kField);
      if (Status status = CheckTextFits(text.size(), room - tokens.size(), context, kField); !status.ok())
        return status;
      const std::vector<Token> more = tokenizer.Tokenize(text, /*add_bos=*/i == 0, SpecialTokens::kParse);
      tokens.insert(tokens.end(), more.begin(), more.end());
      continue;
    }
    const std::optional<Token> token = TokenFromId(items[i], tokenizer);
    if (!token) {
      return InvalidArgument(fmt::format("item {} is neither text nor a token of this model, whose ids are 0 to {}", i,
                                         tokenizer.vocabulary_size() - 1),
                             kField);
    }
    tokens.push_back(*token);
  }
  return tokens;
}

Result<std::vector<Token>> ReadPrompt(const Json& prompt, const ApiContext& context) {
  if (prompt.is_null()) return InvalidArgument("is required", kField);
  if (!IsPrompt(prompt)) return InvalidArgument("must be a string or a list of token ids", kField);
  if (prompt.is_string()) return ReadItems(Json::array({prompt}), context);
  if (prompt.size() > 1 && std::all_of(prompt.begin(), prompt.end(), IsPrompt)) {
    return InvalidArgument("only one prompt per request is supported", kField);
  }
  // [[1, 2, 3]] is OpenAI's list of one prompt of tokens.
  return ReadItems(prompt.size() == 1 && prompt[0].is_array() ? prompt[0] : prompt, context);
}

}  // namespace

Status PrepareText(const Json& body, const ApiContext& context, GenerationRequest* request) {
  ChatInput format;
  if (const Status status = ReadGenerationFields(body, context, request); !status.ok()) return status;
  if (const Status status = ReadOutputFormat(body, &format); !status.ok()) return status;
  SetGrammar(format, request);
  Result<std::vector<Token>> prompt = ReadPrompt(FieldReader(body).At(kField), context);
  if (!prompt.ok()) return prompt.status();
  request->prompt = std::move(*prompt);
  return CheckPromptFits(request->prompt.size(), context, kField);
}

}  // namespace outrider
