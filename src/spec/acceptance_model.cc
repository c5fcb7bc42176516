#include "spec/acceptance_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace outrider {
namespace {

// Lengths of runs from which on the odds may change. Each gets a weight of its own.
constexpr std::array kRightRuns = {1, 2, 3, 5, 9, 17};
constexpr std::array kWrongRuns = {1, 2, 4};

// An array with one value for all tokens (the bias), then one for each length in kRightRuns and kWrongRuns.
template <typename T, typename OfRight, typename OfWrong>
auto PerForm(const T& bias, OfRight of_right, OfWrong of_wrong) {
  std::array<T, 1 + kRightRuns.size() + kWrongRuns.size()> values = {bias};
  auto next = std::transform(kRightRuns.begin(), kRightRuns.end(), values.begin() + 1, of_right);
  std::transform(kWrongRuns.begin(), kWrongRuns.end(), next, of_wrong);
  return values;
}

auto FormAtFirst(const AcceptanceTuning& tuning) {
  return PerForm(
      tuning.bias, [&](int) { return tuning.per_right_run; }, [&](int) { return tuning.per_wrong_run; });
}

template <typename T, size_t N>
std::array<T, N + 1> WithClaim(const std::array<T, N>& form, const T& claim) {
  std::array<T, N + 1> both;
  std::copy(form.begin(), form.end(), both.begin());
  both.back() = claim;
  return both;
}

}  // namespace

AcceptanceModel::AcceptanceModel(int n_sequences, const AcceptanceTuning& tuning)
    : tuning_(tuning),
      odds_(WithClaim(FormAtFirst(tuning), tuning.per_claimed_log_odds), tuning.drift),
      typical_odds_(FormAtFirst(tuning), tuning.drift),
      sequences_(static_cast<size_t>(n_sequences)) {
  for (SeqId seq = 0; seq < n_sequences; ++seq) BeginSequence(seq);
}

void AcceptanceModel::BeginSequence(SeqId seq) {
  sequences_[static_cast<size_t>(seq)] = {0, {0, tuning_.sequence_variance}, {0, tuning_.sequence_variance}};
}

AcceptanceModel::ByForm::Numbers AcceptanceModel::Form(int run, int place) {
  const int right = std::max(run, 0) + place;
  const int wrong = right > 0 ? 0 : -run;
  return PerForm(
      1.0, [=](int length) { return right >= length; }, [=](int length) { return wrong >= length; });
}

AcceptanceModel::ByFormAndConfidence::Numbers AcceptanceModel::FormAndConfidence(int run, int place,
                                                                                 float confidence) const {
  const auto min_claim = static_cast<float>(tuning_.min_claim), max_claim = static_cast<float>(tuning_.max_claim);
  const double claim = confidence > min_claim ? std::min(confidence, max_claim) : min_claim;  // also if it is NaN
  return WithClaim(Form(run, place), std::log(claim / (1 - claim)));
}

void AcceptanceModel::Observe(SeqId seq, float confidence, bool right) {
  Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  odds_.Observe(FormAndConfidence(sequence.run, 0, confidence), right, &sequence.advantage);
  typical_odds_.Observe(Form(sequence.run, 0), right, &sequence.typical_advantage);
  for (Belief* advantage : {&sequence.advantage, &sequence.typical_advantage}) {
    advantage->variance = std::min(advantage->variance + tuning_.sequence_drift, tuning_.sequence_variance);
  }
  sequence.run = right ? std::max(sequence.run, 0) + 1 : std::min(sequence.run, 0) - 1;
}

double AcceptanceModel::Estimate(SeqId seq, int place, float confidence) const {
  const Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  return odds_.Probability(FormAndConfidence(sequence.run, place, confidence), sequence.advantage);
}

double AcceptanceModel::TypicalAcceptance(SeqId seq, int place) const {
  const Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  return typical_odds_.Probability(Form(sequence.run, place), sequence.typical_advantage);
}

}  // namespace outrider
