#include "http/slots.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "api/fields.h"
#include "base/clock.h"

namespace outrider {
namespace {

constexpr size_t kMaxBodyValues = 1000;

Result<SeqId> ParseSlot(const std::string& text) {
  SeqId slot = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slot);
  if (error != std::errc() || end != text.data() + text.size())
    return InvalidArgument(fmt::format("'{}' is not a slot number", text));
  return slot;
}

}  // namespace

Result<Json> SlotActions::Act(const std::string& id, const std::string& action, const std::string& body,
                              const std::string& owner) {
  auto slot = ParseSlot(id);
  if (!slot.ok()) return slot.status();
  if (action == "erase") {
    auto erased = scheduler_.EraseSlot(*slot);
    if (!erased.ok()) return erased.status();
    return Json{{"id_slot", *slot}, {"n_erased", *erased}};
  }
  if (action != "save" && action != "restore") {
    return InvalidArgument(fmt::format("'{}' is not one of save, restore, erase", action), "action");
  }
  auto path = ParsePath(body);
  if (!path.ok()) return path.status();
  const std::lock_guard lock(mutex_);
  return action == "save" ? Save(*slot, *path) : Restore(*slot, *path, owner);
}

Result<std::string> SlotActions::ParsePath(const std::string& body) const {
  if (options_.folder.empty()) return Unsupported("start the server with --slot-save-path to save and restore slots");
  auto json = ParseJson(body, {.values = kMaxBodyValues});
  if (!json.ok()) return json.status();
  FieldReader fields(*json);
  std::string filename;
  fields.String("filename", &filename);
  if (!fields.status().ok()) return fields.status();
  return SlotFilePath(options_.folder, filename);
}

// Whether a file of `bytes` may be written at `path`, where another one may be that it replaces.
Status SlotActions::CheckQuota(const std::string& path, uint64_t bytes) const {
  int files = 1;
  uint64_t sum = bytes;
  std::error_code error;  // what vanishes meanwhile needs no room
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, error)) {
    if (entry.path() == path || !entry.is_regular_file(error)) continue;
    const uint64_t size = entry.file_size(error);
    if (error) continue;
    ++files;
    sum += size;
  }
  if (files > options_.max_files) {
    return InvalidArgument(fmt::format("cannot be saved: there would be more than {} files in the folder for slots "
                                       "(--slot-save-files)",
                                       options_.max_files),
                           "filename");
  }
  if (sum > options_.max_bytes) {
    return InvalidArgument(fmt::format("cannot be saved: the files in the folder for slots would have more than {:.0f} "
                                       "MiB (--slot-save-mib)",
                                       static_cast<double>(options_.max_bytes) / (1 << 20)),
                           "filename");
  }
  return {};
}

Result<Json> SlotActions::Save(SeqId slot, const std::string& path) {
  const TimePoint start = Clock::Real().Now();
  if (Status status = CheckQuota(path, 0); !status.ok()) return status;
  auto saved = scheduler_.SaveSlot(slot);
  if (!saved.ok()) return saved.status();
  if (Status status = CheckQuota(path, SlotFileBytes(*saved)); !status.ok()) return status;
  auto written = WriteSlotFile(path, *saved, key_);
  if (!written.ok()) return written.status();
  return Json{{"id_slot", slot},
              {"filename", path.substr(path.rfind('/') + 1)},
              {"n_saved", saved->tokens.size()},
              {"n_written", *written},
              {"timings", {{"save_ms", Milliseconds(Clock::Real().Now() - start)}}}};
}

Result<Json> SlotActions::Restore(SeqId slot, const std::string& path, const std::string& owner) {
  const TimePoint start = Clock::Real().Now();
  auto saved = ReadSlotFile(path, key_);
  if (!saved.ok()) return saved.status();
  const size_t tokens = saved->tokens.size();
  const uint64_t bytes = SlotFileBytes(*saved);
  if (Status status = scheduler_.RestoreSlot(slot, std::move(*saved), owner); !status.ok()) return status;
  return Json{{"id_slot", slot},
              {"filename", path.substr(path.rfind('/') + 1)},
              {"n_restored", tokens},
              {"n_read", bytes},
              {"timings", {{"restore_ms", Milliseconds(Clock::Real().Now() - start)}}}};
}

}  // namespace outrider
