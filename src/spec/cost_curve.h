// CostCurve: how long a step takes, by the number of rows in it.
//
// Not a line: kernels change with the width, so that on one machine four rows are cheaper than two, on another two rows
// cost twice one (docs/TUNING.md shows curves). So it is measured: a calibration at start gives the shape, and every
// real step corrects it, as
//
//     log seconds = log calibrated(rows) + off(band of rows) + bump(rows)
//
// `off` says by how much the calibration is wrong for a band of widths (1, 2, 3-4, 5-8, …). Bands are learned together:
// what one shows moves the others too, most of all the level that they share, which follows the machine within a dozen
// steps. A bump belongs to one width and is believed only as far as steps of that width give evidence: a few noisy
// steps never make a bargain. `off` is kept per context bucket (doubling lengths), because attention costs more per row
// in longer contexts; a bucket never seen starts from the one used last.
//
// Steps after one of another shape take longer: graphs are built anew, and on a GPU replayed from the third on. The
// curve is that of steps in a row; what a switch costs comes from the calibration.
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
  // Before any measurement: every row costs the same as the first, so that nothing is drafted on hope.
  CostCurve() { ForgetAll(); }

  // `points`: ascending in rows, at least one, positive times. Between them the curve is straight; past the last it
  // goes on with the slope of the last two.
  explicit CostCurve(std::vector<CostPoint> points, double switch_seconds = 0, const CostTuning& tuning = {});

  // Expected duration of a step of `rows` rows whose sequences are about `context` tokens long on average.
  double Seconds(int rows, int context) const;

  // The same for a step that is computed in parts of so many rows each, one after the other.
  double Seconds(std::span<const int> parts, int context) const;

  // What the first steps of another shape take longer, together; 0 if that is hardly worth mentioning.
  double SwitchSeconds() const;

  // A step was measured, of one part or of several that were computed one after the other, with so many rows each.
  // Outliers (a machine that was busy elsewhere) move the curve little.
  void Observe(std::span<const int> parts, int context, double seconds);
  void Observe(int rows, int context, double seconds) { Observe(std::span(&rows, 1), context, seconds); }

  // By what share Seconds(rows) may be wrong if Seconds(than_rows) is right; about one standard deviation.
  double Uncertainty(int rows, int than_rows, int context) const;

  const std::vector<CostPoint>& calibration() const { return points_; }

  // How far off the last observation was: measured / expected before it was taken in.
  double last_ratio() const { return last_ratio_; }

 private:
  static constexpr size_t kBuckets = 12;  // contexts up to 256, 512, … tokens
  static constexpr size_t kBands = 7;
  static constexpr size_t kWidths = 64;  // have a bump each; wider steps share one

  struct Bands {
    std::array<double, kBands> off{};
    std::array<std::array<double, kBands>, kBands> covariance{};  // of what is not known about `off`
    bool seen = false;
  };

  // Mean of what steps of one width took beyond their band, exponentially forgotten.
  struct Bump {
    double mean = 0;
    double weight = 0;  // observations it stands for, at `time`
    double time = 0;    // in observations of the curve
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
