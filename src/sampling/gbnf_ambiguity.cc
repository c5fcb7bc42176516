#include "sampling/gbnf_ambiguity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace outrider {
namespace {

using Kind = GbnfElement::Kind;

constexpr uint64_t kMaxWays = 250'000;  // libllama needs 0.3 s for so many
constexpr size_t kMaxStacks = 4096;     // at once, see gbnf_check.cc
// Longer tokens are rare, except for runs of one character that is neither a letter nor a digit. libllama stops at the
// first way that matches the whole token. So a run is only harmful if it matches up to some length, or if the newline
// at the end of some of these tokens does not match.
constexpr int kMaxCharacters = 16;
constexpr int kMaxRun = 64;
constexpr std::string_view kRunCharacters = " \t\n=-_*#/.~";  // characters of which vocabularies have runs
// Limits of the search. Texts with many ways (kSuspiciousWays) may use more steps. A step takes about 0.1 µs.
constexpr size_t kMaxSteps = 100'000;
constexpr size_t kMaxStepsPerStart = 10'000;
constexpr uint64_t kSuspiciousWays = 1000;
constexpr size_t kMaxSuspiciousSteps = 500'000;
constexpr size_t kMaxBranches = 8;                 // max characters to continue with: those that match in the most ways
constexpr uint64_t kManyWays = uint64_t{1} << 32;  // no need to count further
constexpr uint64_t kPastLastCharacter = uint64_t{1} << 32;

using Range = std::pair<uint64_t, uint64_t>;  // first, past the last

// Sorted and disjoint.
std::vector<Range> Ranges(const GbnfClass& characters) {
  std::vector<Range> listed, merged;
  for (const auto& [low, high] : characters.ranges) {
    if (low <= high) listed.emplace_back(low, uint64_t{high} + 1);
  }
  std::sort(listed.begin(), listed.end());
  for (const Range& range : listed) {
    if (merged.empty() || range.first > merged.back().second) {
      merged.push_back(range);
    } else {
      merged.back().second = std::max(merged.back().second, range.second);
    }
  }
  if (!characters.negated) return merged;
  std::vector<Range> others;
  uint64_t start = 0;
  for (const auto& [first, end] : merged) {
    if (start < first) others.emplace_back(start, first);
    start = end;
  }
  if (start < kPastLastCharacter) others.emplace_back(start, kPastLastCharacter);
  return others;
}

bool IsLetterOrDigit(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

class Search {
 public:
  explicit Search(const GbnfGrammar& grammar) : grammar_(grammar), nodes_(1), expanded_for_(1) {
    for (const auto& rule : grammar.rules) {
      first_.push_back(static_cast<uint32_t>(elements_.size()));
      auto& alternatives = alternatives_.emplace_back();
      for (size_t i = 0; i < rule.size(); ++i) {
        if (i == 0 || rule[i - 1].ends()) alternatives.push_back(first_.back() + static_cast<uint32_t>(i));
      }
      elements_.insert(elements_.end(), rule.begin(), rule.end());
    }
    for (const GbnfClass& characters : grammar.classes) ranges_.push_back(Ranges(characters));
  }

  Status Run() {
    if (!SearchFrom(alternatives_[grammar_.root], true)) return Refuse(grammar_.root);
    for (size_t rule = 0; rule < grammar_.rules.size(); ++rule) {
      if (n_steps_ > kMaxSteps) return {};
      if (!SearchFrom(alternatives_[rule], rule == grammar_.root)) return Refuse(rule);
      const auto& elements = grammar_.rules[rule];
      for (size_t i = 1; i < elements.size(); ++i) {
        const GbnfElement before = elements[i - 1];
        if (elements[i].ends() || before.ends()) continue;
        const bool new_rule = elements[i].is_rule() && !(before.is_rule() && before.value == elements[i].value);
        if (!new_rule && before.kind != Kind::kToken) continue;
        if (!SearchFrom({first_[rule] + static_cast<uint32_t>(i)}, rule == grammar_.root)) return Refuse(rule);
      }
    }
    return {};
  }

 private:
  // A stack is represented by the index of its top node; equal stacks have equal indexes. 0 is the empty stack: what
  // would follow after it is not known.
  struct Node {
    uint32_t below = 0;
    uint32_t position = 0;  // in elements_
  };

  // The state after some text: stacks with text or a token on top, and the number of ways that lead to each.
  struct State {
    std::vector<std::pair<uint32_t, uint64_t>> ways;  // sorted by the stack, each once
    uint64_t total = 0;
    int n_characters = 0;
    uint32_t last = 0;     // the last character of the text
    bool escaped = false;  // some way has left the rules where the search began
    bool is_run = false;   // all characters of the text are the same, which makes runs

    // The state with the most ways is followed first.
    bool operator<(const State& other) const { return total < other.total; }
  };

  Status Refuse(size_t rule) const {
    return InvalidArgument(
        fmt::format("the grammar cannot be used: rule {} is too ambiguous, it can match the same text "
                    "of {} characters in thousands of ways",
                    grammar_.Name(rule), n_characters_),
        "grammar");
  }

  uint32_t Push(uint32_t below, uint32_t position) {
    if (elements_[position].ends()) return below;
    const auto [entry, is_new] =
        index_.try_emplace(uint64_t{below} << 32 | position, static_cast<uint32_t>(nodes_.size()));
    if (is_new) {
      nodes_.push_back({below, position});
      expanded_for_.push_back(0);
    }
    return entry->second;
  }

  // Adds the stacks that libllama makes of `stack`, each once.
  void Expand(uint32_t stack, uint64_t ways, State* state) {
    ++n_expansions_;
    todo_.assign(1, stack);
    while (!todo_.empty()) {
      const uint32_t top = todo_.back();
      todo_.pop_back();
      ++n_steps_;
      if (top == 0) state->escaped = true;
      if (top == 0 || expanded_for_[top] == n_expansions_) continue;
      expanded_for_[top] = n_expansions_;
      const Node node = nodes_[top];
      const GbnfElement element = elements_[node.position];
      if (element.is_rule()) {
        const uint32_t below = Push(node.below, node.position + 1);
        for (uint32_t alternative : alternatives_[element.value]) todo_.push_back(Push(below, alternative));
      } else {
        state->ways.emplace_back(top, ways);
        state->total += ways;
      }
    }
  }

  static void Merge(State* state) {
    auto& ways = state->ways;
    std::sort(ways.begin(), ways.end());
    size_t n = 0;
    for (size_t i = 0; i < ways.size(); ++i) {
      if (n > 0 && ways[n - 1].first == ways[i].first) {
        ways[n - 1].second += ways[i].second;
      } else {
        ways[n++] = ways[i];
      }
    }
    ways.resize(n);
    for (auto& [stack, count] : ways) count = std::min(count, kManyWays);
  }

  // Up to kMaxBranches characters that the most ways can go on with, and those that may make a run.
  std::vector<uint32_t> Characters(const State& state) {
    changes_.clear();
    const auto add = [&](uint64_t first, uint64_t end, uint64_t ways) {
      changes_.emplace_back(first, static_cast<int64_t>(ways));
      changes_.emplace_back(end, -static_cast<int64_t>(ways));
    };
    for (const auto& [stack, ways] : state.ways) {
      const GbnfElement element = elements_[nodes_[stack].position];
      if (element.kind == Kind::kCharacter) add(element.value, uint64_t{element.value} + 1, ways);
      if (element.kind == Kind::kAny) add(0, kPastLastCharacter, ways);
      if (element.kind != Kind::kClass) continue;
      for (const auto& [first, end] : ranges_[element.value]) add(first, end, ways);
    }
    n_steps_ += changes_.size();
    std::sort(changes_.begin(), changes_.end());
    std::vector<std::pair<int64_t, uint32_t>> choices;
    int64_t ways = 0;
    for (size_t i = 0; i < changes_.size(); ++i) {
      ways += changes_[i].second;
      const bool more_here = i + 1 < changes_.size() && changes_[i + 1].first == changes_[i].first;
      if (ways > 0 && !more_here) choices.emplace_back(ways, static_cast<uint32_t>(changes_[i].first));
    }
    const size_t n = std::min(choices.size(), kMaxBranches);
    std::partial_sort(choices.begin(), choices.begin() + static_cast<ptrdiff_t>(n), choices.end(), std::greater<>());
    std::vector<uint32_t> characters;
    if (state.n_characters == 0) characters.assign(kRunCharacters.begin(), kRunCharacters.end());
    if (state.is_run) characters.push_back(state.last);
    if (state.n_characters >= kMaxCharacters) return characters;
    for (size_t i = 0; i < n; ++i) characters.push_back(choices[i].second);
    return characters;
  }

  bool Matches(GbnfElement element, uint32_t character) const {
    if (element.kind == Kind::kCharacter) return element.value == character;
    if (element.kind != Kind::kClass) return element.kind == Kind::kAny;
    const auto& ranges = ranges_[element.value];
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), Range(character, kPastLastCharacter));
    return after != ranges.begin() && character < std::prev(after)->second;
  }

  State Accept(const State& state, uint32_t character) {
    State next;
    next.n_characters = state.n_characters + 1;
    next.last = character;
    next.is_run = state.n_characters == 0 ? !IsLetterOrDigit(character) : state.is_run && state.last == character;
    for (const auto& [stack, ways] : state.ways) {
      const Node node = nodes_[stack];
      if (Matches(elements_[node.position], character)) Expand(Push(node.below, node.position + 1), ways, &next);
      if (next.total > kMaxWays && next.n_characters <= kMaxCharacters) break;
    }
    Merge(&next);
    return next;
  }

  bool CanFollow(const State& state, uint32_t character) const {
    return std::any_of(state.ways.begin(), state.ways.end(),
                       [&](const auto& entry) { return Matches(elements_[nodes_[entry.first].position], character); });
  }

  // Whether libllama may try many ways without success. `next` is `state` after one more character.
  bool IsHarmful(const State& state, const State& next, bool at_root) const {
    if (next.ways.size() > kMaxStacks) return true;
    if (next.n_characters <= kMaxCharacters) return next.total > kMaxWays;
    if (next.escaped && !at_root) return false;
    return next.ways.empty() ? state.total > kMaxWays : next.total > kMaxWays && !CanFollow(next, '\n');
  }

  // False if the same stacks were already visited with at least as many ways and at least as many characters left.
  bool IsNew(const State& state) {
    uint64_t hash = state.is_run ? state.last : kPastLastCharacter;
    for (const auto& [stack, ways] : state.ways) hash = (hash ^ stack) * 0x9e3779b97f4a7c15 + (hash >> 29);
    const auto [entry, is_new] = looked_at_.try_emplace(hash, state.total, state.n_characters);
    auto& [total, n_characters] = entry->second;
    if (!is_new && state.total <= total && state.n_characters >= n_characters) return false;
    entry->second = {state.total, state.n_characters};
    return true;
  }

  // False if a text from these positions on can be matched in too many ways.
  bool SearchFrom(const std::vector<uint32_t>& positions, bool at_root) {
    if (n_steps_ > kMaxSteps) return true;
    State start;
    for (uint32_t position : positions) Expand(Push(0, position), 1, &start);
    Merge(&start);
    std::vector<State> states;  // a heap
    states.push_back(std::move(start));
    const size_t last_step = n_steps_ + kMaxStepsPerStart;
    while (!states.empty()) {
      std::pop_heap(states.begin(), states.end());
      const State state = std::move(states.back());
      states.pop_back();
      if (n_steps_ >= (state.total < kSuspiciousWays ? last_step : kMaxSuspiciousSteps)) break;
      if (state.n_characters == (state.is_run ? kMaxRun : kMaxCharacters) || !IsNew(state)) continue;
      for (uint32_t character : Characters(state)) {
        State next = Accept(state, character);
        n_characters_ = next.n_characters;
        if (IsHarmful(state, next, at_root)) return false;
        if (next.ways.empty()) continue;
        states.push_back(std::move(next));
        std::push_heap(states.begin(), states.end());
      }
    }
    return true;
  }

  const GbnfGrammar& grammar_;
  std::vector<GbnfElement> elements_;                // of all rules
  std::vector<uint32_t> first_;                      // [rule]: position of its first element
  std::vector<std::vector<uint32_t>> alternatives_;  // [rule]: positions where they begin
  std::vector<std::vector<Range>> ranges_;           // [class]
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, uint32_t> index_;  // of nodes_, by their contents
  std::vector<uint64_t> expanded_for_;            // [node]: the expansion that saw it last
  uint64_t n_expansions_ = 0;
  std::unordered_map<uint64_t, std::pair<uint64_t, int>> looked_at_;  // total and n_characters by a hash of the state
  size_t n_steps_ = 0;
  int n_characters_ = 0;  // of the text looked at last
  std::vector<uint32_t> todo_;
  std::vector<std::pair<uint64_t, int64_t>> changes_;
};

}  // namespace

Status CheckGbnfAmbiguity(const GbnfGrammar& grammar) {
  return Search(grammar).Run();
}

}  // namespace outrider
