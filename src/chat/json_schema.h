// JSON schemas in the form that llama-common makes grammars of.
#pragma once

#include "base/json.h"

namespace outrider {

// `schema` without the patterns that no grammar can be made of (not anchored, lookaround, …). llama-common accepts any
// string for those and says so on standard error, past every log level, once per conversion: a client could flood the
// log. Such a pattern becomes part of the description instead, as only the model can heed it. Patterns that are no
// regular expressions stay, to be refused by the conversion. `schema` has passed CheckSchema.
Json WithoutUnusablePatterns(const Json& schema);

}  // namespace outrider
