#include "scheduler/generation.h"

#include <iterator>

namespace outrider {

std::optional<Chunk> Generation::Wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, timeout, [this] { return waiting_.has_value(); });
  return std::exchange(waiting_, std::nullopt);
}

void Generation::Push(Chunk chunk) {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_) {
      waiting_ = std::move(chunk);
    } else {
      waiting_->text += chunk.text;
      std::move(chunk.tokens.begin(), chunk.tokens.end(), std::back_inserter(waiting_->tokens));
      waiting_->timings = chunk.timings;
      waiting_->completion = std::move(chunk.completion);
      waiting_->progress.insert(waiting_->progress.end(), chunk.progress.begin(), chunk.progress.end());
    }
  }
  arrived_.notify_one();
}

}  // namespace outrider
