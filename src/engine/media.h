// Media: pictures (and sounds) in a prompt. A model reads one as rows of numbers that a second network, the projector,
// computes from it. In the engine's memory such a row has a position like a token.
//
// In a list of tokens each of these rows has a stand-in: a token that is derived from the file's bytes. So whoever
// reads a history, such as a drafter, sees valid tokens that hardly ever match anything but the same picture. Who
// compares prompts must compare the spans too, because a prompt may contain the same tokens as text.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/media_kind.h"
#include "base/status.h"
#include "base/token.h"

namespace outrider {

// A cryptographic hash of what the rows are computed from. Rows with equal ids are equal.
using MediaId = std::array<uint8_t, 32>;

// Asked now and then while something is waited for or computed; false = nobody wants it any more.
using StillWanted = std::function<bool()>;

// The rows of a picture or of a part of it. Thread-safe.
class MediaRows {
 public:
  MediaRows(const MediaId& id, Pos count) : id_(id), count_(count) {}
  virtual ~MediaRows() = default;

  const MediaId& id() const { return id_; }
  Pos count() const { return count_; }

  // Computes the rows unless they are there already. May wait for others and take seconds. kInvalidArgument if the file
  // is damaged, kUnavailable if the rows are not wanted any more.
  virtual Status Compute(const StillWanted& wanted) = 0;

  // The numbers of a row. Only after Compute.
  virtual const float* Row(Pos row) const = 0;

 private:
  const MediaId id_;
  const Pos count_;
};

// Where rows are in a prompt.
struct MediaSpan {
  Pos begin = 0;
  std::shared_ptr<MediaRows> rows;
  std::string field = {};  // the file's place in the request, for errors

  Pos end() const { return begin + rows->count(); }
};

// Computes all rows that are not there yet. Takes seconds, so it is done before a request is submitted.
Status ComputeMedia(std::span<const MediaSpan> media, const StillWanted& wanted);

// What of that a slot remembers when the request is over.
struct MediaPlace {
  Pos begin = 0, end = 0;
  MediaId id{};

  bool operator==(const MediaPlace&) const = default;
};

std::vector<MediaPlace> PlacesOf(std::span<const MediaSpan> media);

// Tokens, and where rows of pictures stand among them. Refers to the lists of its owner.
struct TextWithMedia {
  // NOLINTNEXTLINE(google-explicit-constructor): any list of tokens is a text
  TextWithMedia(const std::vector<Token>& all_tokens, std::span<const MediaPlace> places = {})
      : tokens(all_tokens), media(places) {}

  std::span<const Token> tokens;
  std::span<const MediaPlace> media;
};

// How many positions at the beginning are read alike: the same tokens, or the same rows of the same picture.
size_t SharedPrefix(const TextWithMedia& a, const TextWithMedia& b);

// The tokens of a prompt without the stand-ins.
std::vector<Token> TextTokens(std::span<const Token> prompt, std::span<const MediaSpan> media);

Token StandIn(const MediaId& id, Pos row, int n_vocab);

// A part of a file as the model wants to read it: tokens such as "<image>", or rows.
struct MediaPiece {
  std::vector<Token> tokens;
  std::shared_ptr<MediaRows> rows;  // null if it is tokens
};

// What the rows of all requests that run or wait take together. Thread-safe.
class MediaMemory {
 public:
  explicit MediaMemory(uint64_t max_bytes) : max_bytes_(max_bytes), held_(std::make_shared<Held>()) {}

  // The bytes count until what is returned is dropped. kResourceExhausted if there is no room beside others. A request
  // that is alone has room, whatever its size; several of one owner get half of the memory at most.
  Result<std::shared_ptr<const void>> Hold(const std::string& owner, uint64_t bytes);

 private:
  struct Held {
    std::mutex mutex;
    uint64_t all = 0;
    std::map<std::string, uint64_t> by_owner;
  };

  const uint64_t max_bytes_;
  const std::shared_ptr<Held> held_;
};

// Thread-safe.
class MediaReader {
 public:
  virtual ~MediaReader() = default;

  virtual bool Reads(MediaKind kind) const = 0;

  // How the model wants to read the file, by its size only: whether all of it can be decoded is found out when the rows
  // are computed. kInvalidArgument if it is not such a file, or too large. What was computed for an owner is used again
  // for the same owner only.
  virtual Result<std::vector<MediaPiece>> Read(std::shared_ptr<const std::string> file, MediaKind kind,
                                               const std::string& owner) = 0;

  // Memory for so many rows, as MediaMemory::Hold.
  virtual Result<std::shared_ptr<const void>> Hold(const std::string& owner, Pos rows) = 0;
};

}  // namespace outrider
