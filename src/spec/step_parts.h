// How a step of several sequences is computed: neighbours, whose ids are consecutive, together as far as all of them
// have rows; those that have more go on after that, again with the neighbours that have more. (libllama's way, with a
// memory of its own for each sequence.)
#pragma once

#include <span>
#include <vector>

#include "base/token.h"

namespace outrider {

struct SequenceRows {
  SeqId seq;
  int rows;  // at least one
};

// Replaces `parts` by the rows of each part. `sequences` in the order of their ids.
void ListParts(std::span<const SequenceRows> sequences, std::vector<int>* parts);

}  // namespace outrider
