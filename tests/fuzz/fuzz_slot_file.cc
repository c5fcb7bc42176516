// Any bytes as a slot file: refused, or exactly what EncodeSlot makes of the slot they hold. As random bytes never have
// the right checksum, they are also tried with a corrected one.
#include <cstring>
#include <string>
#include <string_view>

#include "api/slot_file.h"
#include "require.h"

namespace outrider {
namespace {

constexpr size_t kFingerprintAt = 16;  // see Header in slot_file.cc
constexpr size_t kChecksumBytes = 8;

uint64_t ReadFingerprint(std::string_view bytes) {
  uint64_t fingerprint = 0;
  if (bytes.size() >= kFingerprintAt + 8) std::memcpy(&fingerprint, bytes.data() + kFingerprintAt, 8);
  return fingerprint;
}

std::string WithRightChecksum(std::string bytes) {
  if (bytes.size() < kChecksumBytes) return bytes;
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (size_t i = 0; i < bytes.size() - kChecksumBytes; ++i) {
    hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001B3;
  }
  std::memcpy(bytes.data() + bytes.size() - kChecksumBytes, &hash, kChecksumBytes);
  return bytes;
}

void Check(std::string_view bytes) {
  const uint64_t fingerprint = ReadFingerprint(bytes);
  const SlotFileKey key(fingerprint, {7, 0, 7, 1});
  const Result<SavedSlot> slot = DecodeSlot(bytes, key);
  if (!slot.ok()) return Require(slot.status().code() == StatusCode::kInvalidArgument, "a bad file is a bad request");
  Require(EncodeSlot(*slot, key) == bytes, "an accepted file has one meaning");
  Require(!DecodeSlot(bytes, {fingerprint + 1, key.adapters}).ok(), "files of other models are refused");
  Require(slot->adapters.empty() == DecodeSlot(bytes, fingerprint).ok(), "and those with adapters that are not loaded");
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  outrider::Check(bytes);
  outrider::Check(outrider::WithRightChecksum(bytes));
  return 0;
}
