// Saved slots on disk. A file holds the tokens and the memory of one sequence, with the fingerprint of the tokenizer
// and a checksum: what is cut, altered or from another model is refused before the engine sees it. Files are written
// beside and renamed, so a crash leaves the old one.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "scheduler/stats.h"

namespace outrider {

// A plain file name (letters, digits, '.', '-', '_', not beginning with a dot) inside `directory`; kInvalidArgument
// otherwise.
Result<std::string> SlotFilePath(const std::string& directory, const std::string& filename);

uint64_t SlotFileBytes(const SavedSlot& slot);  // of the file that WriteSlotFile writes
Result<uint64_t> WriteSlotFile(const std::string& path, const SavedSlot& slot, uint64_t fingerprint);  // bytes written
Result<SavedSlot> ReadSlotFile(const std::string& path, uint64_t fingerprint);

// The bytes of a slot file and back; ReadSlotFile without the disk, for tests and the fuzzer.
std::string EncodeSlot(const SavedSlot& slot, uint64_t fingerprint);
Result<SavedSlot> DecodeSlot(std::string_view bytes, uint64_t fingerprint);

}  // namespace outrider
