// Sampler: from a row of logits to a token, for one request.
//
// The logit bias comes first, then the stages in the order of the options (by default llama.cpp's: penalties, DRY,
// top-n-sigma, top-k, typical-p, top-p, min-p, XTC, temperature) or Mirostat instead of them, then the position-keyed
// draw of gumbel.h chooses. Draw() has no lasting effect: the same logits and position give the same token until the
// next Accept(). So verification draws the token of each row in turn and accepts it, and the text does not depend on
// what was drafted.
//
// Belongs to one request; one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "sampling/candidate.h"
#include "sampling/filter.h"
#include "sampling/sampling_options.h"

namespace outrider {

class Sampler {
 public:
  // `prompt`: the tokens before the answer, for penalties and DRY. kInvalidArgument if the grammar does not parse.
  static Result<std::unique_ptr<Sampler>> Create(const SamplingOptions& options, std::span<const Token> prompt,
                                                 FilterFactory& factory);

  // The token for `position`, given the target's logits for it. kNoToken if the grammar forbids every token.
  Token Draw(std::span<const float> logits, Pos position);

  // The sequence now ends with `token`.
  void Accept(Token token);

  // What the last Draw chose from, with normalised probabilities, best first.
  std::vector<Candidate> LastCandidates() const;

  // The normalised probability that the last Draw gave `token`; 0 if it was not among the candidates.
  float LastProbability(Token token) const;

  uint64_t seed() const { return options_.seed; }
  bool greedy() const { return temperature_ <= 0; }

 private:
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  void AddStages(FilterFactory& factory);
  void AddMirostat();

  Token DrawFiltered(std::span<const float> logits, Pos position, bool grammar_first);

  const SamplingOptions options_;
  float temperature_ = 1;  // of the draw
  std::vector<std::unique_ptr<Filter>> filters_;
  std::optional<size_t> filters_before_xtc_;  // nothing = XTC is not among the stages
  std::unique_ptr<Filter> grammar_;
  std::vector<Candidate> storage_;  // one candidate per vocabulary entry, reused from draw to draw
  Candidates last_;                 // what the last draw chose from; points into storage_ or a filter
};

// Index of the largest logit; the lowest on ties.
Token BestToken(std::span<const float> logits);

}  // namespace outrider
