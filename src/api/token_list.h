// Tokens given by their ids in a request.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/token.h"
#include "engine/tokenizer.h"

namespace outrider {

// The token whose id `value` is; nothing if it is no whole number or not in the vocabulary.
std::optional<Token> TokenFromId(const Json& value, const Tokenizer& tokenizer);

// kInvalidArgument unless `list` is a list of ids of this vocabulary. `field` is its place in the request; errors name
// the element.
Result<std::vector<Token>> ReadTokenList(const Json& list, const std::string& field, const Tokenizer& tokenizer);

}  // namespace outrider
