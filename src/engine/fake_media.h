// FakeMediaReader: reads any file as a picture, for tests. Each byte is a row, whose only value is the byte; the tokens
// '[' and ']' are around them. A file that begins with '!' is no picture, and one with '?' cannot be computed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "engine/media.h"

namespace outrider {

inline MediaId FakeMediaId(std::string_view file) {
  Fnv1a hash;
  hash.Add(file);
  MediaId id{};
  for (size_t i = 0; i < sizeof(uint64_t); ++i) id[i] = static_cast<uint8_t>(hash.hash() >> 8 * i);
  return id;
}

class FakeMediaRows : public MediaRows {
 public:
  explicit FakeMediaRows(std::string_view file)
      : MediaRows(FakeMediaId(file), static_cast<Pos>(file.size())), file_(file) {}

  Status Compute(const StillWanted& wanted) override {
    if (!wanted()) return Unavailable("nobody wants it");
    if (file_.starts_with('?')) return Internal("this picture cannot be computed");
    values_.clear();
    for (const char c : file_) values_.push_back(static_cast<float>(static_cast<unsigned char>(c)));
    ++computed_;
    return {};
  }
  const float* Row(Pos row) const override { return &values_.at(static_cast<size_t>(row)); }

  int computed() const { return computed_; }

 private:
  const std::string file_;
  std::vector<float> values_;
  int computed_ = 0;
};

class FakeMediaReader : public MediaReader {
 public:
  // `max_rows`: of all requests that hold some.
  explicit FakeMediaReader(uint64_t max_rows = uint64_t{1} << 30) : memory_(max_rows) {}

  bool Reads(MediaKind kind) const override { return kind == MediaKind::kImage; }

  Result<std::vector<MediaPiece>> Read(std::shared_ptr<const std::string> file, MediaKind,
                                       const std::string&) override {
    if (file->starts_with('!')) return InvalidArgument("this is no picture");
    return std::vector<MediaPiece>{{{'['}, nullptr}, {{}, std::make_shared<FakeMediaRows>(*file)}, {{']'}, nullptr}};
  }

  Result<std::shared_ptr<const void>> Hold(const std::string& owner, Pos rows) override {
    return memory_.Hold(owner, static_cast<uint64_t>(rows));
  }

 private:
  MediaMemory memory_;  // counts rows
};

}  // namespace outrider
