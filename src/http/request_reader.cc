#include "http/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace outrider {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr size_t kMaxChunkLine = 1024;       // a size with extensions, which nobody uses
constexpr size_t kMaxTrailerBytes = 8192;    // likewise unused; they are dropped
constexpr size_t kFirstBodyCapacity = 8192;  // what a Content-Length alone may make the server allocate

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool EqualNames(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<size_t> ParseNumber(std::string_view text, int base) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

RequestHead::RequestHead(std::string_view text) {
  size_t end = text.find(kLineEnd);
  const std::string_view line = text.substr(0, end);
  const size_t space = line.find(' ');
  method_ = line.substr(0, space);
  if (space != std::string_view::npos) {
    const std::string_view rest = line.substr(space + 1);
    path_ = rest.substr(0, rest.find_first_of(" ?#"));
  }
  http_1_0_ = line.ends_with("HTTP/1.0");
  while (end != std::string_view::npos) {
    const size_t begin = end + kLineEnd.size();
    end = text.find(kLineEnd, begin);
    const std::string_view field = text.substr(begin, end == std::string_view::npos ? end : end - begin);
    const size_t colon = field.find(':');
    if (colon != std::string_view::npos) headers_.emplace_back(field.substr(0, colon), Trim(field.substr(colon + 1)));
  }
}

std::string_view RequestHead::Header(std::string_view name) const {
  for (const auto& [field, value] : headers_) {
    if (EqualNames(field, name)) return value;
  }
  return {};
}

bool RequestHead::Has(std::string_view name) const {
  return std::any_of(headers_.begin(), headers_.end(),
                     [&](const auto& header) { return EqualNames(header.first, name); });
}

size_t RequestReader::Take(std::string_view bytes) {
  if (bytes.empty()) return 0;
  if (state_ == State::kHead) return TakeHead(bytes);
  if (state_ != State::kBody) return 0;
  return chunked_ ? TakeChunks(bytes) : TakeLength(bytes);
}

size_t RequestReader::TakeHead(std::string_view bytes) {
  const size_t before = head_text_.size();
  const size_t room = limits_.max_head_bytes - std::min(limits_.max_head_bytes, before);
  const size_t count = std::min(bytes.size(), room);
  head_text_.append(bytes.substr(0, count));
  // An empty first line is no request line; httplib refuses it, and nothing after it is read.
  const size_t end =
      head_text_.starts_with(kLineEnd) ? 0 : head_text_.find("\r\n\r\n", before - std::min<size_t>(before, 3));
  if (end == std::string::npos) {
    if (count < bytes.size() || head_text_.size() == limits_.max_head_bytes) state_ = State::kHeadTooLarge;
    return count;
  }
  const size_t size = end == 0 ? kLineEnd.size() : end + 4;
  head_text_.resize(size);
  head_ = RequestHead(head_text_);
  if (end == 0) must_close_ = true;
  ChooseFraming();
  return size - before;
}

// RFC 9112, section 6.3. Where it would let two readers disagree, the request has no body and nothing follows it.
void RequestReader::ChooseFraming() {
  state_ = State::kComplete;
  std::string_view last_encoding;
  std::optional<size_t> length;
  bool has_encoding = false, bad = must_close_;
  for (const auto& [name, value] : head_.headers()) {
    if (EqualNames(name, "Transfer-Encoding")) {
      has_encoding = true;
      const size_t comma = value.rfind(',');
      last_encoding = Trim(comma == std::string_view::npos ? value : value.substr(comma + 1));
    } else if (EqualNames(name, "Content-Length")) {
      const std::optional<size_t> number = ParseNumber(value, 10);
      bad |= !number || (length && *length != *number);
      length = number;
    } else if (Trim(name).size() != name.size() || name.empty()) {
      bad = true;  // "Content-Length : 5" means a length to some readers
    }
  }
  bad |= has_encoding && (length.value_or(0) > 0 || !EqualNames(last_encoding, "chunked"));
  if (bad) {
    must_close_ = true;
    return;
  }
  chunked_ = has_encoding;
  if (!chunked_ && length.value_or(0) == 0) return;
  if (!chunked_ && *length > limits_.max_body_bytes) {
    state_ = State::kBodyTooLarge;
    return;
  }
  body_left_ = chunked_ ? 0 : *length;
  state_ = State::kBody;
}

bool RequestReader::expects_continue() const {
  return state_ == State::kBody && !head_.is_http_1_0() && EqualNames(head_.Header("Expect"), "100-continue");
}

void RequestReader::SkipBody() {
  if (state_ != State::kBody) return;
  body_ = {};
  must_close_ = true;
  state_ = State::kComplete;
}

// `expected` bytes are to come in all, as far as that is known: capacity is doubled, but not beyond that.
void RequestReader::Append(std::string_view bytes, size_t expected) {
  const size_t needed = body_.size() + bytes.size();
  if (needed > body_.capacity()) {
    const size_t wanted = std::max(kFirstBodyCapacity, 2 * body_.capacity());
    body_.reserve(std::max(needed, std::min(wanted, expected)));
  }
  body_.append(bytes);
}

size_t RequestReader::TakeLength(std::string_view bytes) {
  const size_t count = std::min(bytes.size(), body_left_);
  Append(bytes.substr(0, count), body_.size() + body_left_);
  body_left_ -= count;
  if (body_left_ == 0) state_ = State::kComplete;
  return count;
}

size_t RequestReader::TakeChunks(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && state_ == State::kBody) {
    if (part_ == ChunkPart::kData) {
      const size_t count = std::min(bytes.size() - taken, body_left_);
      Append(bytes.substr(taken, count), limits_.max_body_bytes);
      taken += count;
      body_left_ -= count;
      if (body_left_ == 0) part_ = ChunkPart::kDataEnd;
      continue;
    }
    line_ += bytes[taken++];
    if (line_.ends_with(kLineEnd)) {
      line_.resize(line_.size() - kLineEnd.size());
      EndChunkLine();
      line_.clear();
    } else if (line_.size() > kMaxChunkLine) {
      state_ = State::kBadChunk;
    }
  }
  return taken;
}

void RequestReader::EndChunkLine() {
  switch (part_) {
    case ChunkPart::kSize: {
      const std::optional<size_t> size = ParseNumber(Trim(std::string_view(line_).substr(0, line_.find(';'))), 16);
      if (!size || line_.find('\n') != std::string::npos) {
        state_ = State::kBadChunk;
      } else if (*size > limits_.max_body_bytes - body_.size()) {
        state_ = State::kBodyTooLarge;
      } else {
        body_left_ = *size;
        part_ = *size == 0 ? ChunkPart::kTrailer : ChunkPart::kData;
      }
      return;
    }
    case ChunkPart::kDataEnd:
      if (!line_.empty()) state_ = State::kBadChunk;
      part_ = ChunkPart::kSize;
      return;
    case ChunkPart::kTrailer:
      trailer_bytes_ += line_.size();
      if (trailer_bytes_ > kMaxTrailerBytes) state_ = State::kBadChunk;
      if (!line_.empty()) return;
      if (!body_.empty()) {
        body_prefix_ = fmt::format("{:x}\r\n", body_.size());
        body_suffix_ = "\r\n";
      }
      body_suffix_ += "0\r\n\r\n";
      state_ = State::kComplete;
      return;
    case ChunkPart::kData:
      return;
  }
}

}  // namespace outrider
