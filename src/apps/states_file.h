// Files of what a model computes for each token of a text, written by `outrider states` for `outrider distill`:
//
//   8 bytes     "ORSTATE1"
//   uint32 × 4  layers, width, top, vocabulary
//   uint32 × layers  the numbers of the layers
//   then for each token:
//     int32              number of the line that the text stands in
//     int32              token
//     int32 × top        the likeliest next tokens, likeliest first
//     float16 × top      logarithms of their probabilities at temperature 1
//     float16 × layers × width   what the layers get as their input
//
// Little-endian, without gaps. tools/distill/states.py reads them. The input is JSON lines: {"tokens": [1, 2, …]};
// other members are left alone.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/token.h"

namespace outrider {

struct StatesHead {
  std::vector<int> layers;  // may be empty
  int width = 0;
  int top = 0;
  int vocabulary = 0;
};

std::string EncodeStatesHead(const StatesHead& head);

size_t StatesRecordBytes(const StatesHead& head);

// `logits`: of the whole vocabulary; `states`: of all layers. `to` has StatesRecordBytes(head) bytes.
void EncodeStatesRecord(const StatesHead& head, int text, Token token, std::span<const float> logits,
                        std::span<const float> states, std::span<char> to);

// The tokens of a line of the input; at least one, all of the vocabulary.
Result<std::vector<Token>> ParseTokenLine(std::string_view line, int vocabulary);

}  // namespace outrider
