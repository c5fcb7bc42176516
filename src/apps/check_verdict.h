// CheckVerdict: what the comparisons of `outrider check` amount to.
#pragma once

namespace outrider {

// How one comparison ended. kSkipped: nothing was drafted, so there was nothing to compare.
enum class Comparison { kSame, kDifferent, kSkipped };

class CheckVerdict {
 public:
  void AddLogits(bool same) { differs_ = differs_ || !same; }

  // Texts with the drafts of one drafter, or of all, beside those of plain decoding.
  void AddTexts(Comparison result) {
    differs_ = differs_ || result == Comparison::kDifferent;
    compared_ = compared_ || result != Comparison::kSkipped;
    skipped_ = skipped_ || result == Comparison::kSkipped;
  }

  bool exact() const { return !differs_; }

  // Whether the verdict may be kept for later starts. One difference is enough to say that something is not exact, but
  // it is exact only if some drafts were tested, unless there were no drafters to test.
  bool conclusive() const { return differs_ || compared_ || !skipped_; }

 private:
  bool differs_ = false, compared_ = false, skipped_ = false;
};

}  // namespace outrider
