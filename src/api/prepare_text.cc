// From a text or tokens to a request of the scheduler.
#include <fmt/format.h>

#include <algorithm>

#include "api/attachments.h"
#include "api/choices.h"
#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/output_format.h"
#include "api/prepare.h"
#include "api/token_list.h"
#include "base/request_budget.h"

namespace outrider {
namespace {

constexpr const char* kField = "prompt";

// One prompt as an object, as llama.cpp has it for text with pictures, which are at the public markers.
constexpr const char* kText = "prompt_string";
constexpr const char* kMedia = "multimodal_data";

bool IsPrompt(const Json& item) {
  return item.is_string() || item.is_array() || item.is_object();
}

// `items`: texts and token ids; the beginning-of-text token is put before a text that comes first.
Result<std::vector<Token>> ReadItems(const Json& items, const ApiContext& context) {
  const Tokenizer& tokenizer = context.tokenizer;
  std::vector<Token> tokens;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_string()) {
      const auto& text = items[i].get_ref<const std::string&>();
      // A long list of texts is not tokenised to its end if it does not fit.
      if (Status status = CheckTextFits(tokens.size(), text.size(), context, kField); !status.ok()) return status;
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

// Puts a marker of ours in the place of each public one, and attaches the file that belongs there. A picture is sent as
// plain base64; llama.cpp's clients have no other way to say what it is.
Status AttachMedia(const Json& files, std::string* text, std::vector<Attachment>* attachments) {
  const std::string field = fmt::format("{}.{}", kField, kMedia);
  size_t at = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    at = text->find(kPublicMarker, at);
    if (at == text->npos) {
      return InvalidArgument(
          fmt::format("has {} files, but the text has {} markers {}", files.size(), i, kPublicMarker), field);
    }
    const std::string place = fmt::format("{}[{}]", field, i);
    const Result<std::string> marker = Attach(ReadBase64(files[i], place), MediaKind::kImage, place, attachments);
    if (!marker.ok()) return marker.status();
    text->replace(at, kPublicMarker.size(), *marker);
    at += marker->size();
  }
  if (text->find(kPublicMarker, at) == text->npos) return {};
  return InvalidArgument(fmt::format("has {} files, but the text has more markers {}", files.size(), kPublicMarker),
                         field);
}

Status ReadPromptObject(const Json& prompt, const ApiContext& context, GenerationRequest* request) {
  FieldReader fields(prompt, fmt::format("{}.", kField));
  std::string text;
  Json files = Json::array();
  if (!fields.Has(kText)) fields.Fail(kText, "is required");
  fields.String(kText, &text);
  fields.Array(kMedia, &files);
  if (!fields.status().ok()) return fields.status();
  std::vector<Attachment> attachments;
  if (!files.empty()) {
    if (const Status status = AttachMedia(files, &text, &attachments); !status.ok()) return status;
  }
  return PreparePrompt(text, /*add_bos=*/true, attachments, context, kField, request);
}

Status ReadPrompt(const Json& prompt, const ApiContext& context, GenerationRequest* request) {
  if (!IsPrompt(prompt)) return InvalidArgument("must be a string or a list of token ids", kField);
  if (prompt.is_object()) return ReadPromptObject(prompt, context, request);
  Result<std::vector<Token>> tokens = ReadItems(prompt.is_array() ? prompt : Json::array({prompt}), context);
  if (!tokens.ok()) return tokens.status();
  request->prompt = std::move(*tokens);
  return CheckPromptFits(request->prompt.size(), context, kField);
}

size_t CountFiles(const Json& prompt) {
  if (!prompt.is_object()) return 0;
  const Json& files = FieldReader(prompt).At(kMedia);
  return files.is_array() ? files.size() : 0;
}

// A list of strings, lists and objects is a list of prompts: [[1, 2], "text"]; one with token ids is a prompt.
bool IsListOfPrompts(const Json& prompt) {
  return prompt.is_array() && !prompt.empty() && std::all_of(prompt.begin(), prompt.end(), IsPrompt);
}

}  // namespace

Status PrepareFormat(const Json& body, const ApiContext& context, GenerationRequest* request) {
  ChatInput format;
  if (const Status status = ReadGenerationFields(body, context, request); !status.ok()) return status;
  if (const Status status = ReadOutputFormat(body, &format); !status.ok()) return status;
  SetGrammar(format, request);
  return {};
}

Result<std::vector<GenerationRequest>> PrepareTexts(const Json& body, const ApiContext& context,
                                                    GenerationRequest request) {
  if (const Status status = PrepareFormat(body, context, &request); !status.ok()) return status;
  const Json& prompt = FieldReader(body).At(kField);
  if (prompt.is_null()) return InvalidArgument("is required", kField);
  const bool several = IsListOfPrompts(prompt);
  const size_t count = several ? prompt.size() : 1;
  if (count > kMaxChoices) {
    return InvalidArgument(fmt::format("has {} prompts, more than {}", count, kMaxChoices), kField);
  }
  size_t files = 0;
  for (size_t i = 0; i < count; ++i) files += CountFiles(several ? prompt[i] : prompt);
  if (files > kMaxAttachments) {
    return InvalidArgument(fmt::format("has {} files; a request may have {}", files, kMaxAttachments), kField);
  }
  std::vector<GenerationRequest> requests;
  for (size_t i = 0; i < count; ++i) {
    requests.push_back(request);
    const Status status = ReadPrompt(several ? prompt[i] : prompt, context, &requests.back());
    if (!status.ok()) return status;
  }
  return requests;
}

}  // namespace outrider
