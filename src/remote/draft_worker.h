// DraftWorker: the thread of a draft server that computes. It owns the DraftBatcher and passes it what other threads
// post. Any thread may call; no call blocks.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "remote/draft_batcher.h"

namespace outrider {

class DraftWorker {
 public:
  // The model outlives the worker.
  DraftWorker(const DraftModel& model, const DraftBatcherOptions& options);

  // Closes all streams; peers are not called afterwards.
  ~DraftWorker();

  StreamId Connect(std::string client, std::shared_ptr<DraftPeer> peer);
  void Receive(StreamId id, draft::v1::ToServer message);
  void Disconnect(StreamId id);
  void CloseAll(const Status& status);

  DraftStats stats() const;  // as of the last batch

 private:
  using Task = std::function<void(DraftBatcher&)>;

  void Post(Task task);
  void Run(const DraftModel& model, const DraftBatcherOptions& options);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> inbox_;  // guarded by mutex_
  DraftStats stats_;         // guarded by mutex_
  StreamId last_id_ = 0;     // guarded by mutex_
  bool stopping_ = false;    // guarded by mutex_
  std::thread thread_;
};

}  // namespace outrider
