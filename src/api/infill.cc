#include "api/infill.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/fields.h"
#include "api/turn_input.h"

namespace outrider {
namespace {

constexpr size_t kMaxExtra = 1024;

// llama.cpp's, and with them what models of its users have seen.
constexpr const char* kRepository = "myproject\n";
constexpr const char* kThisFile = "filename\n";
constexpr const char* kSnippet = "\n\n--- snippet ---\n\n";

void Append(const std::vector<Token>& more, std::vector<Token>* tokens) {
  tokens->insert(tokens->end(), more.begin(), more.end());
}

std::vector<Token> TextTokens(const std::string& text, const Tokenizer& tokenizer) {
  return tokenizer.Tokenize(text, /*add_bos=*/false, SpecialTokens::kAsText);
}

// The other files, each after its name, and the name of the file with the gap.
Result<std::vector<Token>> ReadExtra(const Json& extra, const Tokenizer& tokenizer) {
  const InfillTokens marks = tokenizer.infill();
  std::vector<Token> tokens;
  if (marks.repository != kNoToken) {
    tokens.push_back(marks.repository);
    Append(TextTokens(kRepository, tokenizer), &tokens);
  }
  if (extra.size() > kMaxExtra) return InvalidArgument(fmt::format("has more than {} items", kMaxExtra), "input_extra");
  for (size_t i = 0; i < extra.size(); ++i) {
    FieldReader fields(extra[i], ElementField("input_extra", i) + ".");
    std::string text, filename = "tmp";
    if (!fields.Has("text")) fields.Fail("text", "is required");
    fields.String("text", &text);
    fields.String("filename", &filename);
    if (!fields.status().ok()) return fields.status();
    if (marks.file != kNoToken) {
      tokens.push_back(marks.file);
      Append(TextTokens(filename + "\n", tokenizer), &tokens);
    } else {
      Append(TextTokens(kSnippet, tokenizer), &tokens);
    }
    Append(TextTokens(text, tokenizer), &tokens);
  }
  if (marks.file != kNoToken) {
    tokens.push_back(marks.file);
    Append(TextTokens(kThisFile, tokenizer), &tokens);
  }
  return tokens;
}

void KeepLast(size_t count, std::vector<Token>* tokens) {
  if (tokens->size() > count) tokens->erase(tokens->begin(), tokens->end() - static_cast<std::ptrdiff_t>(count));
}

}  // namespace

Result<std::vector<Token>> InfillPrompt(const Json& body, const ApiContext& context, int max_tokens) {
  const Tokenizer& tokenizer = context.tokenizer;
  const InfillTokens marks = tokenizer.infill();
  if (marks.prefix == kNoToken || marks.suffix == kNoToken || marks.middle == kNoToken) {
    return Unsupported("this model was not made to fill gaps: it has no tokens for prefix, suffix and middle");
  }
  FieldReader fields(body);
  std::string prefix, suffix, beginning;
  Json extra = Json::array();
  for (const char* name : {"input_prefix", "input_suffix"}) {
    if (!fields.Has(name)) fields.Fail(name, "is required");
  }
  fields.String("input_prefix", &prefix);
  fields.String("input_suffix", &suffix);
  fields.String("prompt", &beginning);
  fields.Array("input_extra", &extra);
  if (!fields.status().ok()) return fields.status();
  Result<std::vector<Token>> extra_tokens = ReadExtra(extra, tokenizer);
  if (!extra_tokens.ok()) return extra_tokens.status();

  const auto context_tokens = static_cast<size_t>(context.sequence_length);
  const size_t batch = std::min(static_cast<size_t>(context.batch), context_tokens);
  const std::vector<Token> begun = tokenizer.Tokenize(beginning, /*add_bos=*/false, SpecialTokens::kParse);
  std::vector<Token> before = TextTokens(prefix, tokenizer), after = TextTokens(suffix, tokenizer);
  KeepLast(batch / 4 * 3, &before);
  after.resize(std::min(after.size(), batch / 4 - std::min(batch / 4, begun.size() + 2)));
  const size_t for_answers = 2 * static_cast<size_t>(std::max(max_tokens, 0));
  KeepLast(context_tokens - std::min(context_tokens, batch + for_answers), &*extra_tokens);

  before.insert(before.begin(), marks.prefix);
  Append(begun, &before);
  after.insert(after.begin(), marks.suffix);

  std::vector<Token> prompt = std::move(*extra_tokens);
  if (tokenizer.adds_bos()) prompt.push_back(tokenizer.bos());
  Append(context.suffix_first ? after : before, &prompt);
  Append(context.suffix_first ? before : after, &prompt);
  prompt.push_back(marks.middle);
  return prompt;
}

}  // namespace outrider
