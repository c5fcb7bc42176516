// ngram-map-k and ngram-map-k4v: look up the last size_n tokens (the key) in a map of all keys of the sequence and what
// followed them, take the next token from there, and go on with the key that ends in it.
//
//   - ngram-map-k remembers for each key the token that followed last.
//   - ngram-map-k4v remembers up to four of them with their counts, and takes the most frequent one if it followed at
//     least twice as often as all others together.
#pragma once

#include "drafters/registry.h"

namespace outrider {

DrafterKind NgramMapKKind();
DrafterKind NgramMapK4vKind();

}  // namespace outrider
