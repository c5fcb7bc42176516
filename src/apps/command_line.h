// Command lines as text: split into words, and put together again so that a shell would understand them.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace outrider {

// The words of a command line; quotes keep spaces, as in a shell. kInvalidArgument if a quote is not closed.
Result<std::vector<std::string>> SplitWords(const std::string& line);

// The command line of these words, the program first and without its folder, quoted for a shell. Secrets
// are hidden (base/secrets.h).
std::string PrintableCommandLine(const std::vector<std::string>& words);

// The words this process was started with.
std::vector<std::string> OwnCommandLine();

}  // namespace outrider
