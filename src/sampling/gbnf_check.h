// Decides which grammars of clients may be passed to libllama.
//
// libllama trusts its grammars: it prints those that do not parse to stderr, aborts on some that do, and needs
// exponential time or unlimited memory for others. CheckGbnf refuses all of these before libllama sees them and passes
// the rest, with limits far above what people write and what llama-common makes of JSON schemas and tools. It takes
// milliseconds. Pure function, thread-safe.
#pragma once

#include <string_view>

#include "base/status.h"
#include "sampling/gbnf_grammar.h"

namespace outrider {

// kInvalidArgument, field "grammar", with a sentence that names the rule at fault. `is_token` says which `<text>` is a
// token of the model; without it all are.
Status CheckGbnf(std::string_view grammar, const GbnfTokenTest& is_token = nullptr);

}  // namespace outrider
