#include "spec/cost_curve.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace outrider {
namespace {

constexpr double kAnyRowSeconds = 0.01;  // of a curve that was not calibrated: the first observation sets the level

}  // namespace
CostCurve::CostCurve(std::vector<CostPoint> points, double switch_seconds, const CostTuning& tuning)
    : tuning_(tuning), points_(std::move(points)), switch_seconds_(switch_seconds) {
  assert(!points_.empty());
  ForgetAll();
}

// Nothing was observed yet.
void CostCurve::ForgetAll() {
  Bands untouched;
  for (size_t i = 0; i < kBands; ++i) {
    for (size_t j = 0; j < kBands; ++j) untouched.covariance[i][j] = PriorCovariance(i, j);
  }
  bands_.fill(untouched);
}

double CostCurve::PriorCovariance(size_t band, size_t other) const {
  return tuning_.level_variance + tuning_.tilt_variance * static_cast<double>(band * other) +
         (band == other ? tuning_.band_variance : 0);
}

size_t CostCurve::Bucket(int context) {
  size_t bucket = 0;
  for (int limit = 256; context > limit && bucket < kBuckets - 1; limit *= 2) ++bucket;
  return bucket;
}

size_t CostCurve::Band(int rows) {
  return std::min<size_t>(std::bit_width(static_cast<unsigned>(std::max(rows, 1)) - 1), kBands - 1);
}

size_t CostCurve::Width(int rows) {
  return std::min(static_cast<size_t>(std::max(rows, 1) - 1), kWidths);
}

double CostCurve::Calibrated(int rows) const {
  if (points_.empty()) return kAnyRowSeconds * rows;
  if (points_.size() == 1) return points_[0].seconds * std::max(1.0, static_cast<double>(rows) / points_[0].rows);
  const auto above = std::lower_bound(points_.begin() + 1, points_.end() - 1, rows,
                                      [](const CostPoint& point, int wanted) { return point.rows < wanted; });
  const CostPoint& high = *above;
  const CostPoint& low = *(above - 1);
  const double slope = (high.seconds - low.seconds) / (high.rows - low.rows);
  // Outside of the measured points a slope that is only noise must not lead to times near or below 0.
  if (rows < low.rows) return low.seconds;
  if (rows > high.rows) return high.seconds + std::max(0.0, slope) * (rows - high.rows);
  return low.seconds + slope * (rows - low.rows);
}

const CostCurve::Bands& CostCurve::BandsIn(size_t bucket) const {
  return bands_[bands_[bucket].seen ? bucket : last_bucket_];
}

double CostCurve::Weight(const Bump& bump) const {
  return bump.weight * std::exp2((bump.time - observations_) / tuning_.age_half_life);
}

double CostCurve::Height(const Bump& bump) const {
  const double weight = Weight(bump);
  return bump.mean * weight / (weight + tuning_.bump_prior);
}

double CostCurve::BumpVariance(const Bump& bump) const {
  return tuning_.step_noise * tuning_.step_noise / (Weight(bump) + tuning_.bump_prior);
}

double CostCurve::Seconds(int rows, int context) const {
  const double off = BandsIn(Bucket(context)).off[Band(rows)] + Height(bumps_[Width(rows)]);
  return Calibrated(rows) * std::exp(off);
}

double CostCurve::Uncertainty(int rows, int than_rows, int context) const {
  const Bands& bands = BandsIn(Bucket(context));
  const size_t band = Band(rows), other = Band(than_rows);
  const double variance = bands.covariance[band][band] + bands.covariance[other][other] -
                          2 * bands.covariance[band][other] + BumpVariance(bumps_[Width(rows)]);
  return rows == than_rows ? 0 : std::sqrt(std::max(variance, 0.0));
}

// Makes `bucket` the current one. A bucket that was never used starts as a copy of the last one, with more uncertainty.
CostCurve::Bands& CostCurve::Enter(size_t bucket) {
  Bands& bands = bands_[bucket];
  const double forgotten = bands.seen ? tuning_.forgetting : tuning_.forgetting_in_new_context;
  if (!bands.seen) bands = bands_[last_bucket_];
  bands.seen = true;
  last_bucket_ = bucket;
  for (size_t i = 0; i < kBands; ++i) {
    for (size_t j = 0; j < kBands; ++j) {
      double& covariance = bands.covariance[i][j];
      covariance += forgotten * (PriorCovariance(i, j) - covariance) + tuning_.level_drift;
    }
  }
  return bands;
}

double CostCurve::Seconds(std::span<const int> parts, int context) const {
  double seconds = 0;
  for (const int rows : parts) seconds += Seconds(rows, context);
  return seconds;
}

bool CostCurve::Measured(int rows) const {
  return std::any_of(points_.begin(), points_.end(), [rows](const CostPoint& point) { return point.rows == rows; });
}

double CostCurve::SwitchSeconds() const {
  return switch_seconds_ > tuning_.negligible_switch * Calibrated(1) ? switch_seconds_ : 0;
}

void CostCurve::Observe(std::span<const int> parts, int context, double seconds) {
  if (!(seconds > 0)) return;  // the clock is too coarse for this step
  double expected = 0;
  std::array<double, kBands> share{};  // of the expected time, by band
  for (const int rows : parts) {
    const double part = Seconds(rows, context);
    share[Band(rows)] += part;
    expected += part;
  }
  for (double& band : share) band /= expected;
  last_ratio_ = seconds / expected;
  const double off = std::log(last_ratio_);
  Bands& bands = Enter(Bucket(context));
  if (observations_ == 0) bands.off.fill(off);  // nothing was known about the level before
  const double surprise = observations_ == 0 ? 0 : std::clamp(off, -tuning_.max_surprise, tuning_.max_surprise);

  // A step of a Kalman filter: the surprise is divided among its possible causes, in proportion to their uncertainty.
  std::array<double, kBands> known{};
  double own = tuning_.step_noise * tuning_.step_noise;
  double variance = 0;
  for (size_t i = 0; i < kBands; ++i) {
    for (size_t j = 0; j < kBands; ++j) known[i] += bands.covariance[i][j] * share[j];
    variance += share[i] * known[i];
  }
  if (parts.size() == 1) own += BumpVariance(bumps_[Width(parts[0])]);
  variance += own;
  for (size_t i = 0; i < kBands; ++i) {
    bands.off[i] += known[i] / variance * surprise;
    for (size_t j = 0; j < kBands; ++j) bands.covariance[i][j] -= known[i] * known[j] / variance;
  }

  observations_ += 1;
  if (parts.size() > 1) return;  // it is not known which part the deviation comes from
  Bump& bump = bumps_[Width(parts[0])];
  const double beyond = Height(bump) + surprise * own / variance;
  bump.weight = Weight(bump) * std::exp2(-1 / tuning_.bump_half_life) + 1;
  bump.time = observations_;
  bump.mean += (beyond - bump.mean) / bump.weight;
}

}  // namespace outrider
