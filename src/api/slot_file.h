// Saved slots on disk. A file holds the tokens and the memory of one sequence, with the fingerprints of the model and
// of the adapters it was computed with, and a checksum: what is cut, altered or from another model is refused before
// the engine sees it. Files are written beside and renamed, so a crash leaves the old one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "scheduler/stats.h"

namespace outrider {

// Fingerprints of what a server computes with. An adapter may have another id in the server that reads a file than it
// had in the one that wrote it.
struct SlotFileKey {
  SlotFileKey(uint64_t model_fingerprint, std::vector<uint64_t> adapter_fingerprints = {})
      : model(model_fingerprint), adapters(std::move(adapter_fingerprints)) {}

  uint64_t model;
  std::vector<uint64_t> adapters;  // by id
};

// A plain file name (letters, digits, '.', '-', '_', not beginning with a dot) inside `directory`; kInvalidArgument
// otherwise.
Result<std::string> SlotFilePath(const std::string& directory, const std::string& filename);

uint64_t SlotFileBytes(const SavedSlot& slot);  // of the file that WriteSlotFile writes
Result<uint64_t> WriteSlotFile(const std::string& path, const SavedSlot& slot,
                               const SlotFileKey& key);  // bytes written
Result<SavedSlot> ReadSlotFile(const std::string& path, const SlotFileKey& key);

// The bytes of a slot file and back; ReadSlotFile without the disk, for tests and the fuzzer.
std::string EncodeSlot(const SavedSlot& slot, const SlotFileKey& key);
Result<SavedSlot> DecodeSlot(std::string_view bytes, const SlotFileKey& key);

}  // namespace outrider
