#include "api/token_list.h"

#include <fmt/format.h>

namespace outrider {

std::optional<Token> TokenFromId(const Json& value, const Tokenizer& tokenizer) {
  if (!value.is_number_integer()) return std::nullopt;
  // Numbers past the range of int64_t are stored as unsigned and would wrap around.
  const auto size = static_cast<uint64_t>(tokenizer.vocabulary_size());
  const bool known = value.is_number_unsigned() ? value.get<uint64_t>() < size
                                                : value.get<int64_t>() >= 0 && value.get<uint64_t>() < size;
  return known ? std::optional<Token>(value.get<Token>()) : std::nullopt;
}

Result<std::vector<Token>> ReadTokenList(const Json& list, const std::string& field, const Tokenizer& tokenizer) {
  if (!list.is_array()) return InvalidArgument("must be a list of token ids", field);
  std::vector<Token> tokens;
  tokens.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<Token> token = TokenFromId(list[i], tokenizer);
    if (!token) {
      return InvalidArgument(
          fmt::format("is not a token of this model, whose ids are 0 to {}", tokenizer.vocabulary_size() - 1),
          fmt::format("{}[{}]", field, i));
    }
    tokens.push_back(*token);
  }
  return tokens;
}

}  // namespace outrider
