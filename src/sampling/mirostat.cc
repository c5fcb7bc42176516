#include "sampling/mirostat.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

void Normalise(Candidates& candidates) {
  double sum = 0;
  for (const Candidate& c : candidates) sum += std::exp(static_cast<double>(c.logit) - candidates.data[0].logit);
  for (Candidate& c : candidates) {
    c.probability = static_cast<float>(std::exp(static_cast<double>(c.logit) - candidates.data[0].logit) / sum);
  }
}

}  // namespace

void Mirostat::Apply(Candidates& candidates) {
  left_.clear();
  if (candidates.size == 0) return;
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  candidates.sorted = true;
  Normalise(candidates);
  candidates.size = std::clamp<size_t>(CountKept(candidates), 1, candidates.size);
  Normalise(candidates);
  left_.assign(candidates.begin(), candidates.end());
}

// How many of the best candidates stay.
size_t Mirostat::CountKept(const Candidates& candidates) const {
  if (version_ == 2) {
    const auto surprising = [&](const Candidate& c) { return -std::log2(c.probability) > limit_; };
    return static_cast<size_t>(std::find_if(candidates.begin(), candidates.end(), surprising) - candidates.begin());
  }
  // Version 1 takes the best candidates for a Zipf distribution and estimates its exponent.
  constexpr size_t kEstimatedFrom = 100;
  double products = 0, squares = 0;
  for (size_t i = 0; i + 1 < std::min(kEstimatedFrom, candidates.size); ++i) {
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    const double b = std::log(static_cast<double>(candidates.data[i].probability) / candidates.data[i + 1].probability);
    products += t * b;
    squares += t * t;
  }
  const double exponent = products / squares, excess = exponent - 1;
  const double kept = std::pow((excess * std::exp2(limit_)) / (1 - std::pow(candidates.size, -excess)), 1 / exponent);
  // Not a number for a single candidate, or where the best ones are equally likely.
  return kept >= 0 && kept < static_cast<double>(candidates.size) ? static_cast<size_t>(kept) : candidates.size;
}

void Mirostat::Accept(Token token) {
  const auto found = std::find_if(left_.begin(), left_.end(), [&](const Candidate& c) { return c.token == token; });
  if (found != left_.end()) limit_ -= eta_ * (-std::log2(found->probability) - tau_);
  left_.clear();
}

}  // namespace outrider
