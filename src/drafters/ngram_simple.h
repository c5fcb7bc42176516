// ngram-simple: finds the latest place where the last size_n tokens stood before and copies what followed there.
#pragma once

#include "drafters/registry.h"

namespace outrider {

DrafterKind NgramSimpleKind();

}  // namespace outrider
