// CostCurve: how long a step takes, by the number of rows in it.
//
// The curve is not a straight line: engines use different kernels for different widths, so on one machine four rows are
// cheaper than two, and on another two rows cost twice as much as one (docs/TUNING.md shows curves). So it is measured.
// A calibration at the start gives the shape, and every real step corrects it:
//
//     log seconds = log calibrated(rows) + off(band of rows) + bump(rows)
//
// `off` says by how much the calibration is wrong for a band of widths (1, 2, 3-4, 5-8, …). The bands have a common
// level and deviations of their own. An observation of one band mostly moves the common level, and with it all other
// bands, so the curve follows a machine that becomes slower within a dozen steps. `bump` is the deviation of a single
// width. It counts only as far as steps of that width give evidence, so that a few noisy steps do not make a width look
// cheap. `off` is kept per bucket of context lengths (doubling), because attention costs more per row in longer
// contexts; a bucket that was never used starts from the one used last.
//
// A step takes longer if the step before had another shape: graphs are built anew, and a GPU replays them only from the
// third step on. The curve describes steps whose predecessors had the same shape; what a switch of shapes costs comes
// from the calibration.
//
// Pure: no clock, no engine. Constant time per call, no allocation after construction.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "spec/tuning.h"

namespace outrider {

struct CostPoint {
  int rows;
  double seconds;
};

class CostCurve {
 public:
  // Without a measurement every row costs as much as the first one, so that drafts do not seem to pay.
  CostCurve() { ForgetAll(); }

  // `points`: ascending in rows, at least one, positive times. Between them the curve is straight; past the last it
  // goes on with the slope of the last two.
  explicit CostCurve(std::vector<CostPoint> points, double switch_seconds = 0, const CostTuning& tuning = {});

  // Expected duration of a step of `rows` rows whose sequences are about `context` tokens long on average.
  double Seconds(int rows, int context) const;

  // The same for a step that is computed in parts of so many rows each, one after the other.
  double Seconds(std::span<const int> parts, int context) const;

  // Whether the calibration has measured steps of so many rows.
  bool Measured(int rows) const;

  // The extra time, in sum, of the first steps after a switch to another shape; 0 if it is negligible.
  double SwitchSeconds() const;

  // A step took `seconds`. `parts`: the rows of each of its parts, which were computed one after the other. Outliers
  // (because the machine was busy with something else) change the curve only a little.
  void Observe(std::span<const int> parts, int context, double seconds);
  void Observe(int rows, int context, double seconds) { Observe(std::span(&rows, 1), context, seconds); }

  // The share by which Seconds(rows) may be wrong if Seconds(than_rows) is right: about one standard deviation.
  double Uncertainty(int rows, int than_rows, int context) const;

  const std::vector<CostPoint>& calibration() const { return points_; }

  // Of the last observation: measured seconds / seconds that were expected before it.
  double last_ratio() const { return last_ratio_; }

 private:
  static constexpr size_t kBuckets = 12;  // contexts up to 256, 512, … tokens
  static constexpr size_t kBands = 7;
  static constexpr size_t kWidths = 64;  // widths with a bump of their own; wider steps share one

  struct Bands {
    std::array<double, kBands> off{};
    std::array<std::array<double, kBands>, kBands> covariance{};  // the uncertainty of `off`
    bool seen = false;
  };

  // The mean deviation of steps of one width from their band (in log seconds); older steps count exponentially less.
  struct Bump {
    double mean = 0;
    double weight = 0;  // number of observations that the mean stands for, as of `time`
    double time = 0;    // number of observations of the curve so far
  };

  void ForgetAll();
  double PriorCovariance(size_t band, size_t other) const;
  static size_t Bucket(int context);
  static size_t Band(int rows);
  static size_t Width(int rows);
  double Calibrated(int rows) const;
  const Bands& BandsIn(size_t bucket) const;
  Bands& Enter(size_t bucket);
  double Weight(const Bump& bump) const;
  double Height(const Bump& bump) const;
  double BumpVariance(const Bump& bump) const;

  CostTuning tuning_;
  std::vector<CostPoint> points_;
  std::array<Bands, kBuckets> bands_{};
  std::array<Bump, kWidths + 1> bumps_{};
  size_t last_bucket_ = 0;
  double observations_ = 0;
  double last_ratio_ = 1;
  double switch_seconds_ = 0;
};

}  // namespace outrider
