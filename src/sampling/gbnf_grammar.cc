#include "sampling/gbnf_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/utf8.h"
#include "sampling/gbnf_scanner.h"

namespace outrider {
namespace {

using Kind = GbnfElement::Kind;
using Rule = std::vector<GbnfElement>;

// The converters from JSON schema and from tools write about 100 bytes per property. Within these limits libllama needs
// less than 50 MiB and a tenth of a second to read a grammar, and a request that waits holds less than 10 MiB for it.
constexpr size_t kMaxBytes = 1 << 20;
constexpr size_t kMaxRules = 50'000;       // groups and repetitions included
constexpr size_t kMaxElements = 1 << 19;   // as libllama counts them, repetitions written out
constexpr size_t kMaxNameBytes = 4 << 20;  // libllama copies a rule's name for every group in the rule
// libllama's parser calls itself for nested groups: 8 MiB of stack are enough for 10,000 of them, not for 20,000. The
// schema converter opens a group for each character of a property's name if it has to exclude that name.
constexpr int kMaxNesting = 300;
constexpr size_t kMaxTokenBytes = 256;     // the tokenizer's regular expressions recurse along the text
constexpr uint64_t kMaxRepetition = 2000;  // libllama's own
constexpr uint64_t kNoMaximum = std::numeric_limits<uint64_t>::max();

// From characters to rules. The functions that read return false once `error_` is set.
class Parser : private GbnfScanner {
 public:
  Parser(std::string_view text, const GbnfTokenTest& is_token) : GbnfScanner(text), is_token_(is_token) {}

  Result<GbnfGrammar> Parse() {
    SkipSpace(/*newlines=*/true);
    while (Peek() != 0) {
      if (!ReadRule()) return *error_;
    }
    if (Status status = CheckDefined(); !status.ok()) return status;
    return std::move(grammar_);
  }

 private:
  bool NewSymbol(uint32_t* id) {
    *id = static_cast<uint32_t>(grammar_.names.size());
    grammar_.names.push_back(rule_name_);
    name_bytes_ += rule_name_.size();
    if (grammar_.names.size() > kMaxRules)
      return Fail(fmt::format("there are more than {} rules and groups", kMaxRules));
    if (name_bytes_ > kMaxNameBytes) return Fail("a rule with so long a name has too many groups");
    return true;
  }

  bool Symbol(std::string_view name, uint32_t* id) {
    const auto found = ids_.find(name);
    if (found != ids_.end()) {
      *id = found->second;
      return true;
    }
    if (!NewSymbol(id)) return false;
    grammar_.names[*id] = name;
    ids_.emplace(name, *id);
    return true;
  }

  bool Count(uint64_t elements) {
    n_elements_ += std::min<uint64_t>(elements, kMaxElements + 1);
    if (n_elements_ > kMaxElements) {
      return Fail(fmt::format("with its repetitions written out the grammar has more than {} elements", kMaxElements));
    }
    return true;
  }

  void Define(uint32_t id, Rule rule) {
    if (grammar_.rules.size() <= id) grammar_.rules.resize(id + 1);
    grammar_.rules[id] = std::move(rule);
  }

  bool ReadRule() {
    rule_name_ = {};
    const std::string_view name = TakeName();
    if (name.empty()) return Fail("the name of a rule is missing (letters, digits and '-')");
    rule_name_ = name;
    SkipSpace(/*newlines=*/false);
    uint32_t id;
    if (!Symbol(name, &id)) return false;
    if (text_.substr(pos_, 3) != "::=") return Fail("'::=' is missing");
    pos_ += 3;
    SkipSpace(/*newlines=*/true);
    if (!ReadAlternatives(id, /*depth=*/0)) return false;
    if (Peek() != 0 && Peek() != '\r' && Peek() != '\n') return Fail("the rule does not end where its line does");
    SkipSpace(/*newlines=*/true);
    return true;
  }

  bool ReadAlternatives(uint32_t id, int depth) {
    Rule rule;
    if (!ReadSequence(&rule, depth)) return false;
    while (Peek() == '|') {
      ++pos_;
      rule.push_back({Kind::kAlternative});
      SkipSpace(/*newlines=*/true);
      if (!Count(1) || !ReadSequence(&rule, depth)) return false;
    }
    rule.push_back({Kind::kEnd});
    if (!Count(1)) return false;
    Define(id, std::move(rule));
    return true;
  }

  // What a repetition sign applies to: the elements from `start` to the end of the rule, and how many rules libllama
  // thinks they stand for.
  struct LastSymbol {
    size_t start;
    uint64_t n_rules = 1;
  };

  bool ReadSequence(Rule* rule, int depth) {
    const bool newlines = depth > 0;
    LastSymbol last{rule->size()};
    for (;; SkipSpace(newlines)) {
      const char c = Peek();
      const bool is_symbol = c == '"' || c == '[' || c == '<' || c == '!' || c == '(' || c == '.' || IsNameCharacter(c);
      if (is_symbol) {
        last = {rule->size()};
        symbol_start_ = pos_;
      }
      if (c == '"') {
        if (!ReadString(rule)) return false;
      } else if (c == '[') {
        if (!ReadClass(rule)) return false;
      } else if (c == '<' || c == '!') {
        if (!ReadToken(rule)) return false;
      } else if (c == '(') {
        if (!ReadGroup(rule, depth, &last)) return false;
      } else if (c == '.') {
        ++pos_;
        if (!Count(1)) return false;
        rule->push_back({Kind::kAny});
      } else if (is_symbol) {
        uint32_t id;
        if (!Symbol(TakeName(), &id) || !Count(1)) return false;
        rule->push_back({Kind::kRule, id});
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        if (!ReadRepetition(rule, newlines, &last)) return false;
      } else {
        return true;
      }
    }
  }

  bool ReadString(Rule* rule) {
    ++pos_;
    while (Peek() != '"') {
      uint32_t character;
      if (!ReadCharacter(&character) || !Count(1)) return false;
      rule->push_back({Kind::kCharacter, character});
    }
    ++pos_;
    return true;
  }

  bool ReadClass(Rule* rule) {
    GbnfClass characters;
    ++pos_;
    if (Peek() == '^') {
      ++pos_;
      characters.negated = true;
    }
    while (Peek() != ']') {
      uint32_t low, high;
      if (!ReadCharacter(&low)) return false;
      high = low;
      ++characters.libllama_elements;
      if (Peek() == '-' && Peek(1) != ']') {
        ++pos_;
        if (!ReadCharacter(&high)) return false;
        ++characters.libllama_elements;
      }
      characters.ranges.emplace_back(low, high);
    }
    ++pos_;
    // libllama ignores an empty class: it matches the empty text.
    if (characters.ranges.empty()) return true;
    if (!Count(characters.libllama_elements)) return false;
    rule->push_back({Kind::kClass, static_cast<uint32_t>(grammar_.classes.size())});
    grammar_.classes.push_back(std::move(characters));
    return true;
  }

  bool ReadToken(Rule* rule) {
    if (Peek() == '!') ++pos_;
    if (Peek() != '<') return Fail("'!' is not followed by a token such as <[5]> or <think>");
    const size_t start = pos_++;
    if (Peek() == '[') {
      ++pos_;
      uint64_t id;
      if (!TakeNumber(&id)) return false;
      if (text_.substr(pos_, 2) != "]>") return Fail("a token id does not end with ']>'");
      pos_ += 2;
    } else {
      const size_t end = text_.find('>', pos_);
      if (end == std::string_view::npos) return Fail("a token does not end with '>'");
      pos_ = end + 1;
      const std::string_view token = text_.substr(start, pos_ - start);
      if (token.size() > kMaxTokenBytes || (is_token_ && !is_token_(token))) {
        return Fail("what '<' and '>' enclose is not one token of this model");
      }
    }
    rule->push_back({Kind::kToken});
    return Count(1);
  }

  bool ReadGroup(Rule* rule, int depth, LastSymbol* last) {
    if (depth == kMaxNesting) return Fail(fmt::format("groups are nested more than {} deep", kMaxNesting));
    ++pos_;
    SkipSpace(/*newlines=*/true);
    const size_t n_before = grammar_.names.size();
    uint32_t id;
    if (!NewSymbol(&id) || !ReadAlternatives(id, depth + 1) || !Count(1)) return false;
    last->n_rules = grammar_.names.size() - n_before;
    rule->push_back({Kind::kRule, id});
    if (Peek() != ')') return Fail("a group is not closed");
    ++pos_;
    return true;
  }

  bool ReadRepetition(Rule* rule, bool newlines, LastSymbol* last) {
    const char sign = text_[pos_++];
    if (sign != '{') return Repeat(sign == '+' ? 1 : 0, sign == '?' ? 1 : kNoMaximum, rule, last);
    uint64_t min = 0, max = kNoMaximum;
    SkipSpace(newlines);
    if (!TakeNumber(&min)) return false;
    SkipSpace(newlines);
    if (Peek() == ',') {
      ++pos_;
      SkipSpace(newlines);
      if (PeekIsDigit() && !TakeNumber(&max)) return false;
      SkipSpace(newlines);
    } else {
      max = min;
    }
    if (Peek() != '}') return Fail("a repetition is not closed with '}'");
    ++pos_;
    if (min > kMaxRepetition) return Fail(fmt::format("something is repeated more than {} times", kMaxRepetition));
    if (max < min) return Fail("a repetition has a maximum below its minimum");
    return Repeat(min, max > kMaxRepetition ? kNoMaximum : max, rule, last);
  }

  // S{m,n} becomes m times S, followed by a rule for S (S (...)?)?, with one more rule for each of the n - m optional
  // repetitions. Without a maximum it is one rule that refers to itself.
  bool Repeat(uint64_t min, uint64_t max, Rule* rule, LastSymbol* last) {
    if (last->start == rule->size()) return Fail("a repetition has nothing before it to repeat");
    const bool bounded = max != kNoMaximum;
    last->n_rules *= std::max<uint64_t>(bounded ? max : min, 1);
    if (last->n_rules > kMaxRepetition) {
      return Fail(fmt::format("repetitions of repetitions come to more than {}", kMaxRepetition));
    }
    const Rule repeated(rule->begin() + static_cast<ptrdiff_t>(last->start), rule->end());
    uint64_t size = 0;
    for (const GbnfElement& element : repeated) {
      size += element.kind == Kind::kClass ? grammar_.classes[element.value].libllama_elements : 1;
    }
    const uint64_t n_optional = bounded ? max - min : 1;
    if (!Count(min * size + n_optional * (size + 3) + 1)) return false;

    if (min == 0) rule->resize(last->start);
    for (uint64_t i = 1; i < min; ++i) rule->insert(rule->end(), repeated.begin(), repeated.end());
    uint32_t previous = 0;
    for (uint64_t i = 0; i < n_optional; ++i) {
      uint32_t id;
      if (!NewSymbol(&id)) return false;
      Rule optional = repeated;
      if (!bounded || i > 0) optional.push_back({Kind::kRule, bounded ? previous : id});
      optional.push_back({Kind::kAlternative});
      optional.push_back({Kind::kEnd});
      Define(id, std::move(optional));
      previous = id;
    }
    if (n_optional > 0) rule->push_back({Kind::kRule, previous});
    return true;
  }

  Status CheckDefined() {
    const auto undefined = [&](size_t rule) {
      return InvalidArgument(fmt::format("the grammar uses the rule {} but does not define it", grammar_.Name(rule)),
                             "grammar");
    };
    if (grammar_.rules.empty()) return InvalidArgument("the grammar has no rules", "grammar");
    for (size_t i = 0; i < grammar_.rules.size(); ++i) {
      if (grammar_.rules[i].empty()) return undefined(i);
      for (const GbnfElement& element : grammar_.rules[i]) {
        const bool missing =
            element.is_rule() && (element.value >= grammar_.rules.size() || grammar_.rules[element.value].empty());
        if (missing) return undefined(element.value);
      }
    }
    const auto root = ids_.find("root");
    if (root == ids_.end() || root->second >= grammar_.rules.size()) {
      return InvalidArgument("the grammar has no rule named \"root\"", "grammar");
    }
    grammar_.root = root->second;
    return {};
  }

  const GbnfTokenTest& is_token_;
  GbnfGrammar grammar_;
  std::unordered_map<std::string_view, uint32_t> ids_;
  uint64_t n_elements_ = 0;
  size_t name_bytes_ = 0;
};

}  // namespace

std::string GbnfGrammar::Name(size_t rule) const {
  return QuoteRuleName(names[rule]);
}

Result<GbnfGrammar> ParseGbnf(std::string_view text, const GbnfTokenTest& is_token) {
  if (text.size() > kMaxBytes) {
    return InvalidArgument(fmt::format("the grammar is {} bytes long, the limit is {}", text.size(), kMaxBytes),
                           "grammar");
  }
  if (text.find('\0') != std::string_view::npos)
    return InvalidArgument("the grammar contains a NUL character", "grammar");
  if (!IsValidUtf8(text)) return InvalidArgument("the grammar is not valid UTF-8", "grammar");
  return Parser(text, is_token).Parse();
}

}  // namespace outrider
