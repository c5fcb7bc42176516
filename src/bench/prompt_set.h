// Prompts of a benchmark: lines of JSON, {"category": "code", "turns": ["…"]}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace outrider {

struct BenchPrompt {
  std::string category;
  std::vector<std::string> turns;  // of the user, at least one
};

// kInvalidArgument names the line and what is wrong with it. Empty lines are skipped.
Result<std::vector<BenchPrompt>> ParsePrompts(std::string_view lines);

// text/prompts.jsonl, which the program brings along.
std::string_view DefaultPrompts();

// About `tokens` tokens of prose, for a prompt to follow; at most `MostDepth()`.
std::string Depth(int tokens);
int MostDepth();

}  // namespace outrider
