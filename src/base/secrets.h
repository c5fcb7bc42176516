// Secrets (API keys, tokens): comparing them so that the time taken does not help to guess them, and keeping them out
// of what is written. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// The time depends on the lengths only, not on where the strings differ.
bool ConstantTimeEquals(std::string_view a, std::string_view b);

// Whether the word of a command line that follows `flag` is a secret.
bool TakesSecret(std::string_view flag);

// A word of a command line, which may itself hold flags (--variant 'a=--api-key x') or a drafter with its parameters
// (remote:host,token=x), with "..." in place of each secret. Where quotes make it unclear how far a secret goes, all
// that follows it is left out.
std::string HideSecrets(std::string_view word);

}  // namespace outrider
