#include "spec/step_parts.h"

#include <algorithm>
#include <cstddef>

namespace outrider {
namespace {

// The parts after the first `computed` rows of each sequence.
void AddParts(std::span<const SequenceRows> sequences, int computed, std::vector<int>* parts) {
  for (size_t first = 0, last = 0; first < sequences.size(); first = ++last) {
    if (sequences[first].rows == computed) continue;
    int together = sequences[first].rows;
    while (last + 1 < sequences.size() && sequences[last + 1].rows > computed &&
           sequences[last + 1].seq == sequences[last].seq + 1) {
      together = std::min(together, sequences[++last].rows);
    }
    const size_t count = last + 1 - first;
    parts->push_back(static_cast<int>(count) * (together - computed));
    AddParts(sequences.subspan(first, count), together, parts);
  }
}

}  // namespace

void ListParts(std::span<const SequenceRows> sequences, std::vector<int>* parts) {
  parts->clear();
  AddParts(sequences, 0, parts);
}

}  // namespace outrider
