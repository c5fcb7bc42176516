#include "engine/step_split.h"

#include <algorithm>

namespace outrider {

std::span<const StepSplit::Part> StepSplit::Cut(std::span<const SequenceRows> step) {
  n_parts_ = 0;
  if (shared_memory_) {
    CutWhereFull(step);
  } else {
    CutEqually(step);
  }
  return std::span<const Part>(parts_).first(n_parts_);
}

StepSplit::Part& StepSplit::NextPart() {
  if (n_parts_ == parts_.size()) parts_.emplace_back();
  Part& part = parts_[n_parts_++];
  part.clear();
  return part;
}

void StepSplit::CutWhereFull(std::span<const SequenceRows> step) {
  Part* part = nullptr;
  int room = 0;
  for (size_t i = 0; i < step.size(); ++i) {
    for (int done = 0; done < step[i].rows;) {
      if (room == 0) {
        part = &NextPart();
        room = max_rows_;
      }
      const int rows = std::min(room, step[i].rows - done);
      part->push_back({i, done, rows});
      done += rows;
      room -= rows;
    }
  }
}

// How many sequences from `first` on have rows left and consecutive ids.
size_t StepSplit::Neighbours(std::span<const SequenceRows> step, size_t first) const {
  size_t end = first + 1;
  while (end < step.size() && static_cast<int>(end - first) < max_rows_ && done_[end] < step[end].rows &&
         step[end].seq == step[end - 1].seq + 1) {
    ++end;
  }
  return end - first;
}

void StepSplit::CutEqually(std::span<const SequenceRows> step) {
  done_.assign(step.size(), 0);
  for (size_t first = 0; first < step.size();) {
    const auto left = [&](size_t i) { return step[i].rows - done_[i]; };
    if (left(first) == 0) {
      ++first;
      continue;
    }
    size_t count = Neighbours(step, first);
    int rows = std::max(1, max_rows_ / static_cast<int>(count));
    for (size_t i = first; i < first + count; ++i) rows = std::min(rows, left(i));

    // Sequences that would be cut within their last kept_tail_ rows are left for a part of their own.
    const auto may_be_cut = [&](size_t i) { return left(i) == rows || left(i) - rows >= kept_tail_; };
    size_t kept = 0;
    while (kept < count && may_be_cut(first + kept)) ++kept;
    if (kept == 0) {
      kept = 1;
      rows = left(first) <= max_rows_ ? left(first) : left(first) - kept_tail_;
    }
    Part& part = NextPart();
    for (size_t i = first; i < first + kept; ++i) {
      part.push_back({i, done_[i], rows});
      done_[i] += rows;
    }
  }
}

int RowsOf(const StepSplit::Part& part) {
  int rows = 0;
  for (const StepSplit::Slice& slice : part) rows += slice.rows;
  return rows;
}

int MaxGapsToFill(int rows, bool rows_are_cheap) {
  return rows_are_cheap ? rows - 1 : (rows - 1) / 2;
}

bool InBatchOrder(std::span<const StepSplit::Part> parts) {
  size_t sequence = 0;
  for (const StepSplit::Part& part : parts) {
    for (const StepSplit::Slice& slice : part) {
      if (slice.sequence < sequence) return false;
      sequence = slice.sequence;
    }
  }
  return true;
}

}  // namespace outrider
