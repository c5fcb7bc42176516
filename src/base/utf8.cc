#include "base/utf8.h"

#include <cstdint>

namespace outrider {
namespace {

// Length a character has by its first byte; 0 for bytes that cannot begin one.
size_t LengthByFirstByte(unsigned char byte) {
  if (byte < 0x80) return 1;
  if (byte < 0xC2) return 0;  // continuation bytes and overlong two-byte forms
  if (byte < 0xE0) return 2;
  if (byte < 0xF0) return 3;
  if (byte < 0xF5) return 4;
  return 0;
}

// Whether `byte` may stand at `index` (>= 1) of a character that begins with `first`. The second byte rules out
// overlong forms, surrogates and code points past U+10FFFF.
bool MayFollow(unsigned char first, size_t index, unsigned char byte) {
  if (index == 1) {
    if (first == 0xE0) return byte >= 0xA0 && byte <= 0xBF;
    if (first == 0xED) return byte >= 0x80 && byte <= 0x9F;
    if (first == 0xF0) return byte >= 0x90 && byte <= 0xBF;
    if (first == 0xF4) return byte >= 0x80 && byte <= 0x8F;
  }
  return byte >= 0x80 && byte <= 0xBF;
}

struct Scan {
  size_t good;    // bytes of `text` from the start position that fit one character
  size_t wanted;  // bytes that character should have; 0 if no character begins here
};

Scan ScanCharacter(std::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const size_t wanted = LengthByFirstByte(first);
  if (wanted == 0) return {0, 0};
  size_t good = 1;
  while (good < wanted && at + good < text.size() &&
         MayFollow(first, good, static_cast<unsigned char>(text[at + good])))
    ++good;
  return {good, wanted};
}

}  // namespace

bool IsValidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Scan scan = ScanCharacter(text, at);
    if (scan.wanted == 0 || scan.good < scan.wanted) return false;
    at += scan.wanted;
  }
  return true;
}

size_t IncompleteUtf8Tail(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const Scan scan = ScanCharacter(text, text.size() - back);
    if (scan.wanted == 0) continue;  // a continuation byte: look further left
    return scan.good == back && scan.good < scan.wanted ? back : 0;
  }
  return 0;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  if (IsValidUtf8(text)) return std::string(text);
  std::string out;
  out.reserve(text.size() + 8);
  for (size_t at = 0; at < text.size();) {
    const Scan scan = ScanCharacter(text, at);
    if (scan.wanted != 0 && scan.good == scan.wanted) {
      out.append(text.substr(at, scan.wanted));
      at += scan.wanted;
    } else {
      out.append("\xEF\xBF\xBD");
      ++at;
    }
  }
  return out;
}

std::string OneLine(std::string_view text, size_t max_bytes) {
  std::string_view beginning = text.substr(0, max_bytes);
  if (beginning.size() < text.size()) beginning.remove_suffix(IncompleteUtf8Tail(beginning));
  std::string line = ReplaceInvalidUtf8(beginning);
  for (size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    const auto next = i + 1 < line.size() ? static_cast<unsigned char>(line[i + 1]) : 0;
    const bool above_ascii = byte == 0xC2 && next < 0xA0;  // U+0080 to U+009F: terminals obey some of these, too
    if (above_ascii) line.erase(i, 1);
    if (above_ascii || byte < ' ' || byte == 0x7F) line[i] = ' ';
  }
  return line;
}

}  // namespace outrider
