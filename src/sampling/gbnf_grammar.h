// A GBNF grammar in the form that libllama will give it, parsed without libllama.
//
// ParseGbnf follows libllama's parser rule by rule: the same groups and repetitions become the same extra rules in the
// same order, because what libllama does with a grammar depends on them. It differs in three ways: it returns a
// sentence where libllama prints the whole grammar to stderr, it refuses what libllama would never finish reading, and
// it has limits. Pure functions, thread-safe. The names in a GbnfGrammar point into the text that was parsed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace outrider {

// Whether `<text>`, angle brackets included, is exactly one token of the vocabulary.
using GbnfTokenTest = std::function<bool(std::string_view)>;

struct GbnfElement {
  enum class Kind : uint8_t {
    kEnd,          // of the rule
    kAlternative,  // the end of one alternative and the beginning of the next
    kRule,         // value: index of the rule
    kCharacter,    // value: code point
    kClass,        // value: index of the class
    kAny,          // any one character
    kToken,        // a token or all tokens but one
  };
  Kind kind;
  uint32_t value = 0;

  bool ends() const { return kind == Kind::kEnd || kind == Kind::kAlternative; }
  bool is_rule() const { return kind == Kind::kRule; }
};

struct GbnfClass {
  bool negated = false;
  std::vector<std::pair<uint32_t, uint32_t>> ranges;  // inclusive
  uint32_t libllama_elements = 0;
};

struct GbnfGrammar {
  std::vector<std::vector<GbnfElement>> rules;  // each ends with kEnd; rules[i].empty() never
  std::vector<std::string_view> names;          // of the rule as written that rules[i] comes from
  std::vector<GbnfClass> classes;
  uint32_t root = 0;

  // For messages: the name of a rule in quotes, shortened.
  std::string Name(size_t rule) const;
};

// kInvalidArgument, field "grammar", unless libllama's parser would accept `text` within the limits. Without `is_token`
// every `<text>` is taken for a token.
Result<GbnfGrammar> ParseGbnf(std::string_view text, const GbnfTokenTest& is_token);

}  // namespace outrider
