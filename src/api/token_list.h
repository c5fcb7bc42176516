// Tokens given by their ids in a request. `field` is the list's place in the request; errors name the element.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/token.h"
#include "engine/tokenizer.h"

namespace outrider {

// kInvalidArgument unless `list` is a list of ids of this vocabulary.
Result<std::vector<Token>> ReadTokenList(const Json& list, const std::string& field, const Tokenizer& tokenizer);

}  // namespace outrider
