// ngram-mod: one table of fixed size, from hashes of n_match tokens to the token that followed, fed by all requests of
// an owner. Constant memory and constant time; old entries are overwritten by new ones.
#pragma once

#include "drafters/registry.h"

namespace outrider {

DrafterKind NgramModKind();

}  // namespace outrider
