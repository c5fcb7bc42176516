#include "sampling/reasoning_budget.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace outrider {

ReasoningBudget::ReasoningBudget(const ReasoningOptions& options, PieceOf piece_of)
    : options_(options), piece_of_(std::move(piece_of)), longest_(options.start.size()) {
  for (const auto& end : options_.ends) longest_ = std::max(longest_, end.size());
  if (options_.begun) Begin();
}

void ReasoningBudget::Begin() {
  state_ = options_.budget == 0 ? State::kClosing : State::kThinking;
  left_ = options_.budget;
  closed_ = 0;
  recent_.clear();
  character_.clear();
}

bool ReasoningBudget::EndsWith(const std::vector<Token>& sequence) const {
  return !sequence.empty() && recent_.size() >= sequence.size() &&
         std::equal(sequence.rbegin(), sequence.rend(), recent_.rbegin());
}

void ReasoningBudget::Apply(Candidates& candidates) {
  if (state_ != State::kClosing) return;
  const auto forced = std::find_if(candidates.begin(), candidates.end(),
                                   [&](const Candidate& c) { return c.token == options_.closing[closed_]; });
  if (forced == candidates.end()) return;
  std::swap(*forced, candidates.data[0]);
  candidates.size = 1;
}

void ReasoningBudget::Accept(Token token) {
  recent_.push_back(token);
  if (recent_.size() > longest_) recent_.erase(recent_.begin());
  if (state_ == State::kOutside) {
    if (EndsWith(options_.start)) Begin();
    return;
  }
  closed_ = state_ == State::kClosing && token == options_.closing[closed_] ? closed_ + 1 : 0;
  const bool ended =
      std::any_of(options_.ends.begin(), options_.ends.end(), [&](const auto& e) { return EndsWith(e); });
  if (ended || closed_ == options_.closing.size()) {
    state_ = State::kOutside;
    recent_.clear();
    return;
  }
  if (state_ == State::kClosing) return;
  character_ += piece_of_(token);
  character_ = character_.substr(character_.size() - IncompleteUtf8Tail(character_));
  if (--left_ <= 0 && character_.empty()) state_ = State::kClosing;
}

}  // namespace outrider
