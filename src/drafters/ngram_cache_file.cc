// The layout, little-endian, for each n-gram: four tokens (-1 after the last), the number of tokens that followed it,
// and for each of these the token and its count. All numbers are int32.
#include "drafters/ngram_cache_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <type_traits>
#include <vector>

#include "base/file.h"

namespace outrider {
namespace {

static_assert(std::endian::native == std::endian::little, "cache files are little-endian and copied as they are");
static_assert(sizeof(CountedToken) == 8 && std::is_trivially_copyable_v<CountedToken>, "copied as it is");

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;

struct RecordHeader {
  CachedNgram ngram;
  int32_t n_tokens;
};
static_assert(sizeof(RecordHeader) == 20, "no padding: the bytes are the format");

// Takes the records of a file one by one.
class Decoder {
 public:
  Decoder(std::string_view bytes, int vocabulary_size) : bytes_(bytes), vocabulary_size_(vocabulary_size) {}

  bool done() const { return at_ == bytes_.size(); }

  Status DecodeRecord(NgramCounts& counts) {
    RecordHeader header;
    if (!Take(&header, sizeof(header))) return Broken("it ends within an n-gram");
    if (!IsNgram(header.ngram)) return Broken("an n-gram has tokens that this model does not have");
    if (header.n_tokens <= 0) return Broken("an n-gram was followed by no token");
    if (static_cast<size_t>(header.n_tokens) > (bytes_.size() - at_) / sizeof(CountedToken)) {
      return Broken("it ends within the tokens that followed an n-gram");
    }
    tokens_.resize(static_cast<size_t>(header.n_tokens));
    Take(tokens_.data(), tokens_.size() * sizeof(CountedToken));
    if (Status status = CheckTokens(); !status.ok()) return status;
    if (!counts.Insert(header.ngram, tokens_)) return Broken("it has the same n-gram twice");
    return {};
  }

 private:
  bool Take(void* to, size_t n_bytes) {
    if (n_bytes > bytes_.size() - at_) return false;
    std::memcpy(to, bytes_.data() + at_, n_bytes);
    at_ += n_bytes;
    return true;
  }

  bool IsToken(Token token) const { return token >= 0 && token < vocabulary_size_; }

  bool IsNgram(const CachedNgram& ngram) const {
    const auto end = std::find(ngram.begin(), ngram.end(), kNoToken);
    return end != ngram.begin() && std::all_of(ngram.begin(), end, [&](Token token) { return IsToken(token); }) &&
           std::all_of(end, ngram.end(), [](Token token) { return token == kNoToken; });
  }

  // Leaves the tokens in descending order of count.
  Status CheckTokens() {
    std::sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!IsToken(tokens_[i].token)) return Broken("a token is not one of this model's");
      if (tokens_[i].count <= 0) return Broken("a count is not positive");
      if (i > 0 && tokens_[i].token == tokens_[i - 1].token) return Broken("a token follows an n-gram twice");
    }
    std::stable_sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
    return {};
  }

  Status Broken(const char* what) const {
    return InvalidArgument(fmt::format("not an n-gram cache of this model: {} (before byte {})", what, at_));
  }

  const std::string_view bytes_;
  const int vocabulary_size_;
  size_t at_ = 0;
  std::vector<CountedToken> tokens_;  // scratch
};

Status ReadError(const std::string& path) {
  return Internal(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
}

}  // namespace

std::string EncodeNgramCache(const NgramCounts& counts) {
  std::string bytes;
  counts.ForEach([&](const CachedNgram& ngram, std::span<const CountedToken> tokens) {
    const RecordHeader header = {ngram, static_cast<int32_t>(tokens.size())};
    bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes.append(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
  });
  return bytes;
}

Result<NgramCounts> DecodeNgramCache(std::string_view bytes, int vocabulary_size) {
  NgramCounts counts;
  Decoder decoder(bytes, vocabulary_size);
  while (!decoder.done()) {
    if (Status status = decoder.DecodeRecord(counts); !status.ok()) return status;
  }
  return counts;
}

Result<NgramCounts> ReadNgramCache(const std::string& path, int vocabulary_size) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) {
    return errno == ENOENT ? NotFound(fmt::format("there is no file {}", path)) : ReadError(path);
  }
  if (!S_ISREG(about.st_mode)) return InvalidArgument(fmt::format("{} is not a file", path));
  const auto size = static_cast<uint64_t>(about.st_size);
  if (size > kMaxFileBytes) {
    return InvalidArgument(fmt::format("{} has {} bytes; an n-gram cache may have {}", path, size, kMaxFileBytes));
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes(size, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) return ReadError(path);

  Result<NgramCounts> counts = DecodeNgramCache(bytes, vocabulary_size);
  if (!counts.ok()) return InvalidArgument(fmt::format("{} is {}", path, counts.status().message()));
  return counts;
}

Status WriteNgramCache(const std::string& path, const NgramCounts& counts) {
  return ReplaceFile(path, [&](File& file) { return file.Write(EncodeNgramCache(counts)); });
}

}  // namespace outrider
