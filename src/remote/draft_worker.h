// DraftWorker: the thread of a draft server that has the model, at its desk. Any thread may call; nothing blocks.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "remote/draft_desk.h"

namespace outrider {

class DraftWorker {
 public:
  // The model outlives the worker.
  DraftWorker(const DraftModel& model, const DraftDeskOptions& options);

  // Ends all streams; peers are not called afterwards.
  ~DraftWorker();

  StreamId Connect(std::string client, std::shared_ptr<DraftPeer> peer);
  void Receive(StreamId id, draft::v1::ToServer message);
  void Disconnect(StreamId id);
  void CloseAll(const Status& status);

  DraftDeskStats stats() const;  // of a moment ago

 private:
  using Task = std::function<void(DraftDesk&)>;

  void Post(Task task);
  void Run(const DraftModel& model, const DraftDeskOptions& options);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> inbox_;  // guarded by mutex_
  DraftDeskStats stats_;     // guarded by mutex_
  StreamId last_id_ = 0;     // guarded by mutex_
  bool stopping_ = false;    // guarded by mutex_
  std::thread thread_;
};

}  // namespace outrider
