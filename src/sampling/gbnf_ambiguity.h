// Grammars that match the same text in very many ways.
//
// libllama checks a token against a grammar by following every way to match the token's characters. It does not notice
// when two ways lead to the same place: `("=" | "="){30}` against a token of 32 '=' takes 2^30 steps. Whether a grammar
// is that ambiguous cannot be decided in general, so this is a search with a limit. It follows the most ambiguous
// texts up to the length of a token, starting at each rule and at each rule that a rule refers to. Pure function,
// thread-safe.
#pragma once

#include "base/status.h"
#include "sampling/gbnf_grammar.h"

namespace outrider {

// kInvalidArgument, field "grammar", if a text was found that the grammar matches in very many ways. The grammar has
// passed the other checks of CheckGbnf.
Status CheckGbnfAmbiguity(const GbnfGrammar& grammar);

}  // namespace outrider
