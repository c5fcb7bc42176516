// Every flag and every environment variable of llama-server (llama.cpp v0.5.0), and what becomes of it here.
//
// llama_flags.cc has the table. flags.h acts on it, docs/FLAGS.md is made from it, and llama_flags_test.cc compares it
// with llama.cpp's own common/arg.cpp, so that a new version of llama.cpp cannot bring a flag that nobody has decided
// on.
#pragma once

#include <span>
#include <string_view>

namespace outrider {

enum class LlamaFlagKind {
  kSupported,  // it means the same here
  kAccepted,   // it changes nothing here; one line of the log says so
  kRefused,    // the server does not start, and says why
};

struct LlamaFlag {
  std::string_view names;     // all of them, comma-separated: "-c,--ctx-size"
  std::string_view variable;  // environment variable that stands for it; "" = none
  int values;                 // how many words follow it on a command line
  LlamaFlagKind kind;
  std::string_view note = "";      // accepted: why it changes nothing. Refused: why, and what to do instead
  std::string_view harmless = "";  // refused: the values with which it asks for nothing, comma-separated
};

std::span<const LlamaFlag> LlamaFlags();

// The row of `flags` that has this name; null if there is none.
const LlamaFlag* FindLlamaFlag(std::span<const LlamaFlag> flags, std::string_view name);

// Calls `visit` with each part of a comma-separated list.
template <typename Visit>
void ForEachPart(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    visit(list.substr(0, comma));
    list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
  }
}

// Whether `part` is one of the parts of a comma-separated list.
bool HasPart(std::string_view list, std::string_view part);

}  // namespace outrider
