// UTF-8 from untrusted peers and from tokenizers (tokens may end inside a character).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace outrider {

// True if `text` is well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool IsValidUtf8(std::string_view text);

// Bytes at the end of `text` that begin a character but do not finish it: 0 to 3. They may become valid with the next
// token, so a stream holds them back.
size_t IncompleteUtf8Tail(std::string_view text);

// Copies `text`, each byte that is not part of a well-formed character replaced by U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

// Makes text from an untrusted peer safe for one line of a log or a terminal: about the first `max_bytes` bytes of it,
// in well-formed UTF-8, with a blank for every control character.
std::string OneLine(std::string_view text, size_t max_bytes);

}  // namespace outrider
