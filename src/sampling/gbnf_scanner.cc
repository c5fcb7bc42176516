#include "sampling/gbnf_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace outrider {

std::string QuoteRuleName(std::string_view name) {
  constexpr size_t kShown = 60;
  return name.size() <= kShown ? fmt::format("\"{}\"", name) : fmt::format("\"{}...\"", name.substr(0, kShown));
}

bool GbnfScanner::IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || (c >= '0' && c <= '9');
}

bool GbnfScanner::Fail(std::string_view problem) {
  const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(pos_), '\n');
  std::string where = fmt::format("line {}", line);
  if (!rule_name_.empty()) where += fmt::format(", rule {}", QuoteRuleName(rule_name_));
  error_ = InvalidArgument(fmt::format("the grammar does not parse: {}: {}", where, problem), "grammar");
  return false;
}

void GbnfScanner::SkipSpace(bool newlines) {
  for (char c = Peek(); c == ' ' || c == '\t' || c == '#' || (newlines && (c == '\r' || c == '\n')); c = Peek()) {
    ++pos_;
    if (c != '#') continue;
    while (Peek() != 0 && Peek() != '\r' && Peek() != '\n') ++pos_;
  }
}

std::string_view GbnfScanner::TakeName() {
  const size_t start = pos_;
  while (IsNameCharacter(Peek())) ++pos_;
  return text_.substr(start, pos_ - start);
}

bool GbnfScanner::TakeNumber(uint64_t* number) {
  const size_t start = pos_;
  while (PeekIsDigit()) ++pos_;
  const auto [end, error] = std::from_chars(text_.data() + start, text_.data() + pos_, *number);
  if (start == pos_) return Fail("a number is missing");
  if (error != std::errc()) return Fail("a number is too large");
  return true;
}

bool GbnfScanner::ReadCharacter(uint32_t* character) {
  if (Peek() == 0) {
    pos_ = symbol_start_;  // the message names the line where it was opened
    return Fail("a string or a character class is not closed");
  }
  if (Peek() == '\\') return ReadEscape(character);
  const auto first = static_cast<uint8_t>(text_[pos_++]);
  const int more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  *character = more == 0 ? first : first & (0x3F >> more);
  for (int i = 0; i < more; ++i) *character = *character << 6 | (static_cast<uint8_t>(text_[pos_++]) & 0x3F);
  return true;
}

bool GbnfScanner::ReadEscape(uint32_t* character) {
  const char kind = Peek(1);
  const size_t n_hex = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (n_hex > 0) {
    const std::string_view digits = text_.substr(pos_ + 2, n_hex);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *character, 16);
    if (error != std::errc() || end != digits.data() + n_hex) {
      return Fail(fmt::format("'\\{}' needs {} hexadecimal digits", kind, n_hex));
    }
  } else {
    switch (kind) {
      case 't':
        *character = '\t';
        break;
      case 'r':
        *character = '\r';
        break;
      case 'n':
        *character = '\n';
        break;
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
        *character = static_cast<uint8_t>(kind);
        break;
      default:
        return Fail("an escape is none of \\x \\u \\U \\t \\r \\n \\\\ \\\" \\[ \\] \\-");
    }
  }
  pos_ += 2 + n_hex;
  return true;
}

}  // namespace outrider
