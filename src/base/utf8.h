// UTF-8 as it comes from strangers and from tokenizers (tokens may end inside a character).
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

// What a stranger said, fit for a line of a log or a terminal: the beginning of it, about `most` bytes, well-formed,
// and a blank for every control character.
std::string OneLine(std::string_view text, size_t most);

}  // namespace outrider
