// Prompts of a benchmark: lines of JSON, {"category": "code", "turns": ["…"]}; and prose that makes a prompt long.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace outrider {

struct BenchPrompt {
  std::string category;
  std::vector<std::string> turns;  // what the user says, in order; at least one
};

// kInvalidArgument names the line and what is wrong with it. Empty lines are skipped.
Result<std::vector<BenchPrompt>> ParsePrompts(std::string_view lines);

// text/prompts.jsonl, which is built into the program.
std::string_view DefaultPrompts();

// `count` of the prompts: one of each category, then a second of each, and so on. All of them, in their order, if
// `count` is 0 or there are no more.
std::vector<BenchPrompt> SpreadOverCategories(std::vector<BenchPrompt> prompts, int count);

// About `tokens` tokens of prose, to put before a prompt; at most `MaxProseTokens()`.
std::string Prose(int tokens);
int MaxProseTokens();

}  // namespace outrider
