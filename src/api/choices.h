// Several answers to one request: `n` answers to a prompt, and several prompts in one request.
//
// The n answers to a prompt are those of n seeds: the request's seed, that seed + 1, and so on. So each of them can be
// repeated alone, and the first is the one that the request gets without `n`. Prompts do not influence each other: each
// has the answers that it has alone.
//
// A protocol writes each choice with a ResponseWriter of its own; ChoicesWriter makes one answer of them. What they
// share in a stream (one head, one sum of tokens, one end) is in a ChoiceSum.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

inline constexpr int kMaxChoices = 64;  // of one request, prompts times n

// "n", or llama.cpp's "n_cmpl", from 1 to kMaxChoices; absent leaves *n.
Status ReadChoiceCount(const Json& body, int* n);

// For protocols that have no such field: kInvalidArgument if it asks for more than one answer.
Status RefuseChoices(const Json& body);

// The tokens of all choices, as they finish.
class ChoiceSum {
 public:
  // `choices` of which `n` each belong to one prompt.
  ChoiceSum(int choices, int n) : n_(n), open_(choices) {}

  // A choice has ended. The tokens of a prompt count once.
  void Add(int index, const GenerationTimings& timings);

  bool all_finished() const { return open_ == 0; }
  const GenerationTimings& timings() const { return timings_; }  // counts of tokens only

 private:
  const int n_;
  int open_;
  GenerationTimings timings_;
};

// How one protocol writes the choices of a request.
struct ChoiceFormat {
  // The writer of the choice at `index`.
  std::function<std::unique_ptr<ResponseWriter>(const GenerationRequest&, int index)> make_writer;
  // One answer from those of all choices, of which there are at least two.
  std::function<Json(std::vector<Json>)> merge;
};

// `prompts`: a request for each prompt, without regard to `n`. kInvalidArgument if that makes too many choices.
Result<ParsedRequest> WithChoices(std::vector<GenerationRequest> prompts, int n, bool stream,
                                  const ChoiceFormat& format);

}  // namespace outrider
