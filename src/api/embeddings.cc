// POST /v1/embeddings, as OpenAI has it, and what all endpoints with vectors have in common.
#include "api/embeddings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "api/base64.h"
#include "api/fields.h"
#include "api/token_list.h"
#include "base/request_budget.h"

namespace outrider {
namespace {

constexpr size_t kMaxInputs = 2048;  // OpenAI's limit

// Little-endian float32, whatever the machine.
std::vector<uint8_t> FloatBytes(std::span<const float> values) {
  std::vector<uint8_t> bytes;
  bytes.reserve(values.size() * 4);
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(bits >> shift));
  }
  return bytes;
}

bool ReadWantsBase64(FieldReader* fields) {
  std::string format = "float";
  fields->String("encoding_format", &format);
  if (format != "float" && format != "base64") fields->Fail("encoding_format", "must be \"float\" or \"base64\"");
  return format == "base64";
}

Status InputTooLong(size_t tokens, size_t max_tokens, const std::string& field) {
  return InvalidArgument(fmt::format("is too large: it has at least {} tokens, and {} fit", tokens, max_tokens), field);
}

// Token ids and texts; the beginning-of-text token is put before a text that comes first.
Result<std::vector<Token>> ReadMixed(const Json& list, const std::string& field, const ApiContext& context,
                                     size_t max_tokens) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_string()) {
      Result<std::vector<Token>> one = ReadTokenList(Json::array({list[i]}), field, context.tokenizer);
      if (!one.ok()) return InvalidArgument(one.status().message(), fmt::format("{}[{}]", field, i));
      tokens.push_back(one->at(0));
      continue;
    }
    const auto& text = list[i].get_ref<const std::string&>();
    if (tokens.size() > max_tokens) return tokens;  // too many already: the rest need not be tokenised
    const size_t fewest = context.tokenizer.FewestTokens(text.size());
    if (fewest > max_tokens) return InputTooLong(fewest, max_tokens, field);
    const std::vector<Token> more = context.tokenizer.Tokenize(text, /*add_bos=*/i == 0, SpecialTokens::kParse);
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

// One input, a text or its tokens; `field` is where it stands.
Result<std::vector<Token>> ReadInput(const Json& input, const std::string& field, const ApiContext& context,
                                     const Embedder& embedder) {
  if (!input.is_string() && !input.is_array()) return InvalidArgument("must be a string or a list of token ids", field);
  // An empty text is a text: models that put a token at the beginning have an embedding of it.
  const auto max_tokens = static_cast<size_t>(embedder.max_tokens());
  Result<std::vector<Token>> tokens =
      ReadMixed(input.is_array() ? input : Json::array({input}), field, context, max_tokens);
  if (!tokens.ok()) return tokens;
  if (tokens->empty()) return InvalidArgument("has no tokens", field);
  if (tokens->size() > max_tokens) {
    return InputTooLong(tokens->size(), max_tokens, field);
  }
  return tokens;
}

// The beginning of the vector, of length 1 again: what models that were trained for it mean by fewer dimensions.
std::vector<float> Shorten(std::vector<float> vector, size_t dimensions) {
  vector.resize(dimensions);
  double squares = 0;
  for (const float x : vector) squares += static_cast<double>(x) * x;
  const auto scale = static_cast<float>(squares > 0 ? 1 / std::sqrt(squares) : 0);
  for (float& x : vector) x *= scale;
  return vector;
}

}  // namespace

Result<std::vector<std::vector<Token>>> ReadEmbeddingInputs(const Json& input, const std::string& name,
                                                            const ApiContext& context, const Embedder& embedder) {
  if (input.is_null()) return InvalidArgument("is required", name);
  const bool several = input.is_array() && !input.empty() &&
                       std::none_of(input.begin(), input.end(), [](const Json& item) { return item.is_number(); });
  if (!several) {
    Result<std::vector<Token>> tokens = ReadInput(input, name, context, embedder);
    if (!tokens.ok()) return tokens.status();
    return std::vector<std::vector<Token>>{std::move(*tokens)};
  }
  if (input.size() > kMaxInputs) return InvalidArgument(fmt::format("has more than {} items", kMaxInputs), name);
  std::vector<std::vector<Token>> inputs;
  for (size_t i = 0; i < input.size(); ++i) {
    Result<std::vector<Token>> tokens = ReadInput(input[i], fmt::format("{}[{}]", name, i), context, embedder);
    if (!tokens.ok()) return tokens.status();
    inputs.push_back(std::move(*tokens));
  }
  return inputs;
}

Status CheckEmbeds(const Embedder& embedder) {
  if (embedder.kind() != EmbeddingKind::kRank) return {};
  return Unsupported("this server ranks (--reranking); start another one for embeddings");
}

size_t EmbeddingRequest::TokenCount() const {
  size_t count = 0;
  for (const std::vector<Token>& tokens : inputs) count += tokens.size();
  return count;
}

Result<EmbeddingRequest> ParseEmbeddings(const Json& body, const ApiContext& context, const Embedder& embedder) {
  FieldReader fields(body);
  const bool base64 = ReadWantsBase64(&fields);
  int dimensions = 0;
  fields.Int("dimensions", 1, std::numeric_limits<int>::max(), &dimensions);
  if (!fields.status().ok()) return fields.status();
  if (Status status = CheckEmbeds(embedder); !status.ok()) return status;
  if (embedder.kind() == EmbeddingKind::kTokens) {
    return InvalidArgument("--pooling none gives an embedding for each token, which only /embeddings can answer with");
  }
  auto inputs = ReadEmbeddingInputs(fields.At("input"), "input", context, embedder);
  if (!inputs.ok()) return inputs.status();
  EmbeddingRequest request{std::move(*inputs), nullptr};
  request.answer = [base64, dimensions = static_cast<size_t>(dimensions), model = context.model_name,
                    total_tokens = request.TokenCount()](std::vector<InputVectors> vectors) -> Result<Json> {
    Json data = Json::array();
    for (InputVectors& input : vectors) {
      std::vector<float>& vector = input.at(0);
      if (dimensions > vector.size()) {
        return InvalidArgument(fmt::format("is larger than the {} of this model", vector.size()), "dimensions");
      }
      if (dimensions > 0) vector = Shorten(std::move(vector), dimensions);
      data.push_back({{"object", "embedding"},
                      {"index", data.size()},
                      {"embedding", base64 ? Json(EncodeBase64(FloatBytes(vector))) : Json(vector)}});
    }
    return Json{{"object", "list"},
                {"data", std::move(data)},
                {"model", model},
                {"usage", {{"prompt_tokens", total_tokens}, {"total_tokens", total_tokens}}}};
  };
  return request;
}

Result<Json> AnswerEmbeddings(const EmbeddingRequest& request, Embedder& embedder,
                              const std::function<Status(size_t)>& before_each) {
  std::vector<InputVectors> vectors;
  size_t numbers = 0;
  for (const std::vector<Token>& tokens : request.inputs) {
    if (Status status = before_each(tokens.size()); !status.ok()) return status;
    InputVectors input;
    if (embedder.kind() == EmbeddingKind::kTokens) {
      Result<InputVectors> each = embedder.EmbedEach(tokens);
      if (!each.ok()) return each.status();
      input = std::move(*each);
    } else {
      Result<std::vector<float>> vector = embedder.Embed(tokens);
      if (!vector.ok()) return vector.status();
      input.push_back(std::move(*vector));
    }
    for (const std::vector<float>& vector : input) numbers += vector.size();
    if (numbers > kMaxEmbeddedNumbers) {
      return InvalidArgument(fmt::format("the answer has more than {} numbers; send fewer texts", kMaxEmbeddedNumbers));
    }
    vectors.push_back(std::move(input));
  }
  return request.answer(std::move(vectors));
}

}  // namespace outrider
