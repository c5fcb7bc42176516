// GbnfScanner: the characters of a GBNF grammar, one after the other: white space, names, numbers, escapes. ParseGbnf
// builds its rules on it. Names point into the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider {

// In quotes, shortened; for messages.
std::string QuoteRuleName(std::string_view name);

class GbnfScanner {
 protected:
  // The text is valid UTF-8 without NUL, so that Peek() is 0 only at its end.
  explicit GbnfScanner(std::string_view text) : text_(text) {}

  char Peek(size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  static bool IsNameCharacter(char c);
  bool PeekIsDigit() const { return Peek() >= '0' && Peek() <= '9'; }

  // Sets `error_`, with the current line and rule; returns false.
  bool Fail(std::string_view problem);

  void SkipSpace(bool newlines);  // and comments
  std::string_view TakeName();    // "" if there is none
  bool TakeNumber(uint64_t* number);
  bool ReadCharacter(uint32_t* character);  // of a string or a class, escapes included

  const std::string_view text_;
  size_t pos_ = 0;
  size_t symbol_start_ = 0;     // position of the last symbol of a sequence
  std::string_view rule_name_;  // of the rule being read
  std::optional<Status> error_;

 private:
  bool ReadEscape(uint32_t* character);
};

}  // namespace outrider
