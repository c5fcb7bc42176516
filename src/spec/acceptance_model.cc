#include "spec/acceptance_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace outrider {
namespace {

constexpr double kHalfLife = 2000;  // of the record, in tokens

// Before anything is known a drafter's confidence counts half, so that one that is wrong all the time is found out
// soon.
constexpr double kTrust = 0.5;
constexpr double kTypicalAtFirst = 0.4;
constexpr double kPriorWeight = 4;

// Log odds, by which sequences differ from each other, and by which one changes from token to token.
constexpr double kVarianceAtFirst = 1;
constexpr double kVarianceStep = 0.0003;
constexpr double kMostAdvantage = 6;

double Logit(double p) {
  p = std::clamp(p, 1e-4, 1 - 1e-4);
  return std::log(p / (1 - p));
}

double Probability(double logit) {
  return 1 / (1 + std::exp(-logit));
}

}  // namespace

AcceptanceModel::AcceptanceModel(int n_sequences) : sequences_(static_cast<size_t>(n_sequences)) {
  for (SeqId seq = 0; seq < n_sequences; ++seq) BeginSequence(seq);
}

void AcceptanceModel::BeginSequence(SeqId seq) {
  sequences_[static_cast<size_t>(seq)] = {0, 0, kVarianceAtFirst};
}

// Runs in doubling lengths: 4 or more wrong, 2-3, 1; nothing seen yet; 1 right, 2, 3-4, 5-8, 9-16, more.
size_t AcceptanceModel::Form(int run, int place) {
  const int right = std::max(run, 0) + place;
  if (right > 0) return 4 + std::min<size_t>(std::bit_width(static_cast<unsigned>(right - 1)), 5);
  return 3 - std::min<size_t>(std::bit_width(static_cast<unsigned>(-run)), 3);
}

// Finer towards certainty: 0.9 and 0.99 part ways after ten tokens, 0.2 and 0.3 after one.
size_t AcceptanceModel::Bin(float confidence) {
  constexpr std::array<float, kBins - 1> kLimits = {0.15f, 0.35f, 0.55f, 0.75f, 0.9f, 0.97f, 0.995f};
  return static_cast<size_t>(std::upper_bound(kLimits.begin(), kLimits.end(), confidence) - kLimits.begin());
}

void AcceptanceModel::Take(Count& count, bool right) const {
  const double kept = std::exp2((count.time - observations_) / kHalfLife);
  count.right = count.right * kept + (right ? 1 : 0);
  count.all = count.all * kept + 1;
  count.time = observations_;
}

double AcceptanceModel::Share(const Count& count, double prior, double prior_weight) const {
  const double kept = std::exp2((count.time - observations_) / kHalfLife);
  return (count.right * kept + prior * prior_weight) / (count.all * kept + prior_weight);
}

double AcceptanceModel::Record(size_t form, float confidence) const {
  const size_t bin = Bin(confidence);
  const double at_first = confidence > 0 ? kTrust * std::min(confidence, 1.0f) : 0;  // 0 also if it is not a number
  return Share(by_form_and_bin_[form][bin], Share(by_bin_[bin], at_first, kPriorWeight), kPriorWeight);
}

void AcceptanceModel::Observe(SeqId seq, int /*place*/, float confidence, bool right) {
  Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  const size_t form = Form(sequence.run, 0);

  // A step of Kalman's filter for a number that wanders, seen through yes and no.
  const double expected = Probability(Logit(Record(form, confidence)) + sequence.advantage);
  const double information = expected * (1 - expected);
  sequence.variance /= 1 + sequence.variance * information;
  sequence.advantage += sequence.variance * ((right ? 1 : 0) - expected);
  sequence.advantage = std::clamp(sequence.advantage, -kMostAdvantage, kMostAdvantage);
  sequence.variance = std::min(sequence.variance + kVarianceStep, kVarianceAtFirst);

  observations_ += 1;
  Take(by_form_and_bin_[form][Bin(confidence)], right);
  Take(by_bin_[Bin(confidence)], right);
  Take(by_form_[form], right);
  Take(overall_, right);
  sequence.run = right ? std::max(sequence.run, 0) + 1 : std::min(sequence.run, 0) - 1;
}

double AcceptanceModel::Estimate(SeqId seq, int place, float confidence) const {
  const Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  return Probability(Logit(Record(Form(sequence.run, place), confidence)) + sequence.advantage);
}

double AcceptanceModel::TypicalAcceptance(SeqId seq, int place) const {
  const Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  const double record =
      Share(by_form_[Form(sequence.run, place)], Share(overall_, kTypicalAtFirst, kPriorWeight), kPriorWeight);
  return Probability(Logit(record) + sequence.advantage);
}

}  // namespace outrider
