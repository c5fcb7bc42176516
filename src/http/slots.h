// POST /slots/{id}?action=save|restore|erase, as llama.cpp has it.
//
// Act may be called from any thread. Of all saves and restores one is under way at a time, since a slot's memory can be
// large; the file is written and read, and its checksum computed, on the caller's thread and not between steps.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "api/slot_file.h"
#include "base/json.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

namespace outrider {

struct SlotFileOptions {
  std::string folder;                       // "" = saving is refused
  int max_files = 256;                      // in the folder
  uint64_t max_bytes = uint64_t{16} << 30;  // of all files in the folder
};

class SlotActions {
 public:
  // `key`: what saved files belong to. The scheduler must outlive this object.
  SlotActions(SlotFileOptions options, SlotFileKey key, Scheduler& scheduler)
      : options_(std::move(options)), key_(std::move(key)), scheduler_(scheduler) {}

  // `body` names the file for save and restore. What is restored is `owner`'s: only requests of the same owner continue
  // from it.
  Result<Json> Act(const std::string& id, const std::string& action, const std::string& body, const std::string& owner);

 private:
  Result<std::string> ParsePath(const std::string& body) const;
  Result<Json> Save(SeqId slot, const std::string& path);
  Result<Json> Restore(SeqId slot, const std::string& path, const std::string& owner);
  Status CheckQuota(const std::string& path, uint64_t bytes) const;

  const SlotFileOptions options_;
  const SlotFileKey key_;
  Scheduler& scheduler_;
  std::mutex mutex_;  // held while a slot is saved or restored
};

}  // namespace outrider
