// POST /v1/embeddings, as OpenAI has it.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "api/fields.h"
#include "api/info.h"
#include "api/prepare.h"
#include "api/token_list.h"

namespace outrider {
namespace {

constexpr size_t kMaxInputs = 2048;  // OpenAI's limit

std::string Base64(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t given = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < given ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) text += k <= given ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

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

// One input, a text or its tokens; `field` is where it stands.
Result<std::vector<Token>> ReadInput(const Json& input, const std::string& field, const ApiContext& context,
                                     const Embedder& embedder) {
  if (!input.is_string() && !input.is_array()) return InvalidArgument("must be a string or a list of token ids", field);
  const bool empty = input.is_string() ? input.get_ref<const std::string&>().empty() : input.empty();
  if (empty) return InvalidArgument("must not be empty", field);

  if (input.is_string()) {
    const size_t bytes = input.get_ref<const std::string&>().size();
    const Status fits = CheckTextFits(bytes, static_cast<size_t>(embedder.max_tokens()), context, field);
    if (!fits.ok()) return fits;
  }
  Result<std::vector<Token>> tokens =
      input.is_array()
          ? ReadTokenList(input, field, context.tokenizer)
          : context.tokenizer.Tokenize(input.get_ref<const std::string&>(), /*add_bos=*/true, SpecialTokens::kParse);
  if (!tokens.ok()) return tokens;
  if (tokens->empty()) return InvalidArgument("has no tokens", field);
  if (tokens->size() > static_cast<size_t>(embedder.max_tokens())) {
    return InvalidArgument(
        fmt::format("has {} tokens, more than the {} that fit", tokens->size(), embedder.max_tokens()), field);
  }
  return tokens;
}

Result<std::vector<std::vector<Token>>> ReadInputs(const Json& input, const ApiContext& context,
                                                   const Embedder& embedder) {
  if (input.is_null()) return InvalidArgument("is required", "input");
  const bool several = input.is_array() && !input.empty() && !input[0].is_number();
  if (!several) {
    Result<std::vector<Token>> tokens = ReadInput(input, "input", context, embedder);
    if (!tokens.ok()) return tokens.status();
    return std::vector<std::vector<Token>>{std::move(*tokens)};
  }
  if (input.size() > kMaxInputs) return InvalidArgument(fmt::format("has more than {} items", kMaxInputs), "input");
  std::vector<std::vector<Token>> inputs;
  for (size_t i = 0; i < input.size(); ++i) {
    Result<std::vector<Token>> tokens = ReadInput(input[i], fmt::format("input[{}]", i), context, embedder);
    if (!tokens.ok()) return tokens.status();
    inputs.push_back(std::move(*tokens));
  }
  return inputs;
}

}  // namespace

Result<EmbeddingRequest> ReadEmbeddingRequest(const Json& body, const ApiContext& context, const Embedder& embedder) {
  FieldReader fields(body);
  EmbeddingRequest request;
  request.base64 = ReadWantsBase64(&fields);
  if (fields.Has("dimensions")) fields.Fail("dimensions", "is not supported: embeddings have the model's own size");
  if (!fields.status().ok()) return fields.status();
  Result<std::vector<std::vector<Token>>> inputs = ReadInputs(fields.At("input"), context, embedder);
  if (!inputs.ok()) return inputs.status();
  request.inputs = std::move(*inputs);
  return request;
}

Result<Json> EmbeddingsJson(const EmbeddingRequest& request, const ApiContext& context, Embedder& embedder,
                            const std::function<Status(size_t)>& before_each) {
  Json data = Json::array();
  size_t total_tokens = 0;
  for (const std::vector<Token>& tokens : request.inputs) {
    if (const Status status = before_each(tokens.size()); !status.ok()) return status;
    Result<std::vector<float>> embedding = embedder.Embed(tokens);
    if (!embedding.ok()) return embedding.status();
    total_tokens += tokens.size();
    data.push_back({{"object", "embedding"},
                    {"index", data.size()},
                    {"embedding", request.base64 ? Json(Base64(FloatBytes(*embedding))) : Json(*embedding)}});
  }
  return Json{{"object", "list"},
              {"data", std::move(data)},
              {"model", context.model_name},
              {"usage", {{"prompt_tokens", total_tokens}, {"total_tokens", total_tokens}}}};
}

}  // namespace outrider
