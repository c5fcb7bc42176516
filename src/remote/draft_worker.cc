#include "remote/draft_worker.h"

#include <chrono>

namespace outrider {
namespace {

constexpr auto kTick = std::chrono::seconds(1);  // between two checks for silent streams

}  // namespace

DraftWorker::DraftWorker(const DraftModel& model, const DraftBatcherOptions& options)
    : thread_([this, &model, options] { Run(model, options); }) {}

DraftWorker::~DraftWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

StreamId DraftWorker::Connect(std::string client, std::shared_ptr<DraftPeer> peer) {
  StreamId id;
  {
    const std::lock_guard lock(mutex_);
    id = ++last_id_;
  }
  Post([id, client = std::move(client), peer = std::move(peer)](DraftBatcher& batcher) {
    batcher.Connect(id, client, peer);
  });
  return id;
}

void DraftWorker::Receive(StreamId id, draft::v1::ToServer message) {
  Post([id, message = std::move(message)](DraftBatcher& batcher) { batcher.Receive(id, message); });
}

void DraftWorker::Disconnect(StreamId id) {
  Post([id](DraftBatcher& batcher) { batcher.Disconnect(id); });
}

void DraftWorker::CloseAll(const Status& status) {
  Post([status](DraftBatcher& batcher) { batcher.CloseAll(status); });
}

DraftStats DraftWorker::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void DraftWorker::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void DraftWorker::Run(const DraftModel& model, const DraftBatcherOptions& options) {
  DraftBatcher batcher(model, options);
  std::vector<Task> tasks;
  TimePoint next_tick = Clock::Real().Now() + kTick;
  for (bool worked = false;;) {
    {
      std::unique_lock lock(mutex_);
      stats_ = batcher.stats();
      if (!worked) wake_.wait_until(lock, next_tick, [this] { return stopping_ || !inbox_.empty(); });
      if (stopping_) break;
      std::swap(tasks, inbox_);
    }
    for (const Task& task : tasks) task(batcher);
    tasks.clear();
    if (const TimePoint now = Clock::Real().Now(); now >= next_tick) {
      batcher.CloseSilent();
      next_tick = now + kTick;
    }
    worked = batcher.Work();
  }
  batcher.CloseAll(Unavailable("the draft server is shutting down"));
}

}  // namespace outrider
