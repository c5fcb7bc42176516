// The layout, little-endian: Header, adapters in ascending order of their fingerprints, tokens (int32 each), state,
// FNV-1a of all bytes before it (uint64). Files without adapters are of version 1, others of version 2.
#include "api/slot_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "base/hash.h"

namespace outrider {
namespace {

static_assert(std::endian::native == std::endian::little, "slot files are little-endian and copied as they are");

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t n_adapters;
  uint64_t fingerprint;
  uint64_t n_tokens;
  uint64_t state_bytes;
};
static_assert(sizeof(Header) == 40, "no padding: the bytes are the format");

struct AdapterEntry {
  uint64_t fingerprint;
  float scale;
  uint32_t reserved;  // 0
};
static_assert(sizeof(AdapterEntry) == 16);

constexpr char kMagic[8] = {'O', 'U', 'T', 'R', 'S', 'L', 'O', 'T'};
constexpr uint32_t kVersion = 1, kVersionWithAdapters = 2;
constexpr uint32_t kMaxAdapters = 4096;
constexpr size_t kChecksumBytes = sizeof(uint64_t);
constexpr size_t kMaxFilename = 200;  // leaves room for what the temporary name adds; file systems take 255

template <typename T>
std::string_view BytesOf(const T* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

Status Altered(const char* what) {
  return InvalidArgument(fmt::format("the slot file is cut or altered: {}", what), "filename");
}

std::vector<AdapterEntry> EntriesOf(const AdapterSet& adapters, const SlotFileKey& key) {
  std::vector<AdapterEntry> entries;
  for (const AdapterScale& adapter : adapters) {
    entries.push_back({key.adapters[static_cast<size_t>(adapter.id)], adapter.scale, 0});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.fingerprint < b.fingerprint; });
  return entries;
}

// The set that the entries mean in a server with `key`. Equal files, loaded several times, are taken in their order.
Result<AdapterSet> AdaptersFrom(const std::vector<AdapterEntry>& entries, const SlotFileKey& key) {
  std::vector<float> scales(key.adapters.size());
  uint64_t last = 0;
  for (const AdapterEntry& entry : entries) {
    if (entry.reserved != 0 || entry.fingerprint < last || !std::isfinite(entry.scale) || entry.scale == 0) {
      return Altered("its list of adapters is wrong");
    }
    last = entry.fingerprint;
    size_t id = 0;
    while (id < scales.size() && (key.adapters[id] != entry.fingerprint || scales[id] != 0)) ++id;
    if (id == scales.size()) {
      return InvalidArgument("the slot file was saved with an adapter that this server has not loaded (--lora)",
                             "filename");
    }
    scales[id] = entry.scale;
  }
  return AdaptersOf(scales);
}

// Hands the file's bytes to `sink` part by part: a state may be gigabytes and is not copied. Stops if `sink` says
// false.
bool EmitSlot(const SavedSlot& slot, const SlotFileKey& key, const std::function<bool(std::string_view)>& sink) {
  const std::vector<AdapterEntry> adapters = EntriesOf(slot.adapters, key);
  Header header = {{},
                   adapters.empty() ? kVersion : kVersionWithAdapters,
                   static_cast<uint32_t>(adapters.size()),
                   key.model,
                   slot.tokens.size(),
                   slot.state.size()};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  const std::string_view parts[] = {BytesOf(&header, 1), BytesOf(adapters.data(), adapters.size()),
                                    BytesOf(slot.tokens.data(), slot.tokens.size()),
                                    BytesOf(slot.state.data(), slot.state.size())};
  Fnv1a checksum;
  for (const std::string_view part : parts) {
    checksum.Add(part);
    if (!sink(part)) return false;
  }
  const uint64_t hash = checksum.hash();
  return sink(BytesOf(&hash, 1));
}

// Restoring one would make texts depend on which program has read the prompt.
bool IsOfLlamaServer(const Header& header) {
  constexpr std::string_view kLlamaMagic = "qsgg";  // LLAMA_STATE_SEQ_MAGIC
  return std::string_view(header.magic, kLlamaMagic.size()) == kLlamaMagic;
}

// Whether a file of `file_bytes` bytes in all may begin with `header`. After this, its sizes can be relied on.
Status CheckHeader(const Header& header, uint64_t file_bytes, const SlotFileKey& key) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return InvalidArgument(IsOfLlamaServer(header)
                               ? "this is a slot file of llama-server, whose numbers differ in their last bits from "
                                 "those that this server computes; send the prompt again and save it here"
                               : "this is not a slot file",
                           "filename");
  }
  if (header.version != kVersion && header.version != kVersionWithAdapters) {
    return InvalidArgument(
        fmt::format("the slot file has version {}, this server reads up to {}", header.version, kVersionWithAdapters),
        "filename");
  }
  if (header.fingerprint != key.model) {
    return InvalidArgument("the slot file was saved with another model", "filename");
  }
  const uint64_t adapter_bytes = uint64_t{header.n_adapters} * sizeof(AdapterEntry);
  const bool counts = (header.n_adapters > 0) == (header.version == kVersionWithAdapters);
  if (!counts || header.n_adapters > kMaxAdapters || adapter_bytes > file_bytes - sizeof(Header) - kChecksumBytes) {
    return Altered("its list of adapters is wrong");
  }
  const uint64_t content_bytes = file_bytes - sizeof(Header) - adapter_bytes - kChecksumBytes;
  if (header.n_tokens > content_bytes / sizeof(Token) ||
      header.state_bytes != content_bytes - header.n_tokens * sizeof(Token)) {
    return Altered("its size is not what it says");
  }
  return {};
}

// `read` fills in the next bytes of the file, which has `size` of them. They go to their places at once: a state may be
// gigabytes and is not held twice.
Result<SavedSlot> ReadSlot(uint64_t size, const SlotFileKey& key, const std::function<bool(char*, size_t)>& read) {
  Fnv1a checksum;
  const auto read_into = [&](auto* values, size_t count) {
    if (!read(reinterpret_cast<char*>(values), count * sizeof(*values))) return false;
    checksum.Add(BytesOf(values, count));
    return true;
  };
  Header header;
  if (size < sizeof(header) + kChecksumBytes || !read_into(&header, 1)) return Altered("it is too short");
  if (Status status = CheckHeader(header, size, key); !status.ok()) return status;
  std::vector<AdapterEntry> entries(header.n_adapters);
  if (!read_into(entries.data(), entries.size())) return Altered("it is too short");
  auto adapters = AdaptersFrom(entries, key);
  if (!adapters.ok()) return adapters.status();
  SavedSlot slot;
  slot.adapters = std::move(*adapters);
  slot.tokens.resize(header.n_tokens);
  slot.state.resize(header.state_bytes);
  if (!read_into(slot.tokens.data(), slot.tokens.size()) || !read_into(slot.state.data(), slot.state.size())) {
    return Altered("it is too short");
  }
  const uint64_t computed = checksum.hash();
  uint64_t written = 0;
  if (!read(reinterpret_cast<char*>(&written), sizeof(written))) return Altered("it is too short");
  if (computed != written) return Altered("the checksum is wrong");
  return slot;
}

}  // namespace

Result<std::string> SlotFilePath(const std::string& directory, const std::string& filename) {
  const auto allowed = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  if (filename.empty() || filename.size() > kMaxFilename || filename[0] == '.' ||
      !std::all_of(filename.begin(), filename.end(), allowed)) {
    return InvalidArgument(fmt::format("must be a file name of 1 to {} letters, digits, '.', '-', '_', not beginning "
                                       "with a dot",
                                       kMaxFilename),
                           "filename");
  }
  return (std::filesystem::path(directory) / filename).string();
}

std::string EncodeSlot(const SavedSlot& slot, const SlotFileKey& key) {
  std::string bytes;
  EmitSlot(slot, key, [&](std::string_view part) {
    bytes += part;
    return true;
  });
  return bytes;
}

Result<SavedSlot> DecodeSlot(std::string_view bytes, const SlotFileKey& key) {
  return ReadSlot(bytes.size(), key, [&](char* to, size_t count) {
    bytes.copy(to, count);
    bytes.remove_prefix(count);
    return true;
  });
}

uint64_t SlotFileBytes(const SavedSlot& slot) {
  return sizeof(Header) + slot.adapters.size() * sizeof(AdapterEntry) + slot.tokens.size() * sizeof(Token) +
         slot.state.size() + kChecksumBytes;
}

Result<uint64_t> WriteSlotFile(const std::string& path, const SavedSlot& slot, const SlotFileKey& key) {
  uint64_t written = 0;
  const Status status = ReplaceFile(path, [&](File& file) {
    return EmitSlot(slot, key, [&](std::string_view part) {
      written += part.size();
      return file.Write(part);
    });
  });
  if (!status.ok()) return status;
  return written;
}

Result<SavedSlot> ReadSlotFile(const std::string& path, const SlotFileKey& key) {
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // opening a pipe must not wait for its writer
  const std::string name = std::filesystem::path(path).filename().string();
  if (!file.is_open() && errno == ENOENT) return NotFound(fmt::format("there is no slot file {}", name));
  struct stat about {};
  if (!file.is_open() || fstat(file.descriptor(), &about) != 0) {
    return Internal(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(about.st_mode)) return InvalidArgument("this is not a slot file", "filename");

  return ReadSlot(static_cast<uint64_t>(about.st_size), key,
                  [&](char* to, size_t count) { return file.Read(to, count); });
}

}  // namespace outrider
