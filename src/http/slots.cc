#include "http/slots.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "api/fields.h"
#include "api/slot_file.h"
#include "base/clock.h"

namespace outrider {
namespace {

Result<SeqId> ParseSlot(const std::string& text) {
  SeqId slot = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slot);
  if (error != std::errc() || end != text.data() + text.size())
    return InvalidArgument(fmt::format("'{}' is not a slot number", text));
  return slot;
}

Result<std::string> ParsePath(const std::string& body, const std::string& directory) {
  if (directory.empty()) return Unsupported("start the server with --slot-save-path to save and restore slots");
  auto json = ParseJson(body);
  if (!json.ok()) return json.status();
  FieldReader fields(*json);
  std::string filename;
  fields.String("filename", &filename);
  if (!fields.status().ok()) return fields.status();
  return SlotFilePath(directory, filename);
}

Result<Json> Save(SeqId slot, const std::string& path, uint64_t fingerprint, Scheduler& scheduler) {
  const TimePoint start = Clock::Real().Now();
  auto saved = scheduler.SaveSlot(slot);
  if (!saved.ok()) return saved.status();
  auto written = WriteSlotFile(path, *saved, fingerprint);
  if (!written.ok()) return written.status();
  return Json{{"id_slot", slot},
              {"filename", path.substr(path.rfind('/') + 1)},
              {"n_saved", saved->tokens.size()},
              {"n_written", *written},
              {"timings", {{"save_ms", Milliseconds(Clock::Real().Now() - start)}}}};
}

Result<Json> Restore(SeqId slot, const std::string& path, uint64_t fingerprint, Scheduler& scheduler) {
  const TimePoint start = Clock::Real().Now();
  auto saved = ReadSlotFile(path, fingerprint);
  if (!saved.ok()) return saved.status();
  const size_t tokens = saved->tokens.size();
  if (Status status = scheduler.RestoreSlot(slot, std::move(*saved)); !status.ok()) return status;
  return Json{{"id_slot", slot},
              {"filename", path.substr(path.rfind('/') + 1)},
              {"n_restored", tokens},
              {"n_read", std::filesystem::file_size(path)},
              {"timings", {{"restore_ms", Milliseconds(Clock::Real().Now() - start)}}}};
}

}  // namespace

Result<Json> SlotAction(const std::string& id, const std::string& action, const std::string& body,
                        const std::string& directory, uint64_t model_fingerprint, Scheduler& scheduler) {
  auto slot = ParseSlot(id);
  if (!slot.ok()) return slot.status();
  if (action == "erase") {
    auto erased = scheduler.EraseSlot(*slot);
    if (!erased.ok()) return erased.status();
    return Json{{"id_slot", *slot}, {"n_erased", *erased}};
  }
  if (action != "save" && action != "restore") {
    return InvalidArgument(fmt::format("'{}' is not one of save, restore, erase", action), "action");
  }
  auto path = ParsePath(body, directory);
  if (!path.ok()) return path.status();
  return action == "save" ? Save(*slot, *path, model_fingerprint, scheduler)
                          : Restore(*slot, *path, model_fingerprint, scheduler);
}

}  // namespace outrider
