#include "api/token_list.h"

#include <fmt/format.h>

namespace outrider {
namespace {

bool IsToken(const Json& value, const Tokenizer& tokenizer) {
  if (!value.is_number_integer()) return false;
  // Numbers past the range of int64_t are stored as unsigned and would wrap around.
  if (value.is_number_unsigned()) return value.get<uint64_t>() < static_cast<uint64_t>(tokenizer.vocabulary_size());
  return value.get<int64_t>() >= 0 && value.get<int64_t>() < tokenizer.vocabulary_size();
}

}  // namespace

Result<std::vector<Token>> ReadTokenList(const Json& list, const std::string& field, const Tokenizer& tokenizer) {
  if (!list.is_array()) return InvalidArgument("must be a list of token ids", field);
  std::vector<Token> tokens;
  tokens.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    if (!IsToken(list[i], tokenizer)) {
      return InvalidArgument(
          fmt::format("is not a token of this model, whose ids are 0 to {}", tokenizer.vocabulary_size() - 1),
          fmt::format("{}[{}]", field, i));
    }
    tokens.push_back(list[i].get<Token>());
  }
  return tokens;
}

}  // namespace outrider
