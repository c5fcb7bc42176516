// ngram-cache: drafts from statistics of short n-grams, in three levels: those of the sequence itself, those of earlier
// answers to the same owner (dynamic), and those of a corpus (static). A level is asked when the one before has no
// token that was frequent enough. The counts of the static level also weigh the tokens that the other two levels choose
// from.
//
// What is learned from answers of the owner without a name (no API keys) is merged into the dynamic file when the
// drafter is destroyed. What is learned for named owners is never written to a file, and never used for others.
#pragma once

#include "drafters/registry.h"

namespace outrider {

DrafterKind NgramCacheKind();

}  // namespace outrider
