#include "sampling/gbnf_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sampling/gbnf_ambiguity.h"

namespace outrider {
namespace {

// libllama follows all ways in which a text can continue as separate stacks of positions. It compares each stack with
// all others and checks the vocabulary against each: with 4000 stacks a token took 1.3 s. A choice among 1000 strings
// makes 1000 stacks, an object with 200 optional properties 800.
constexpr uint64_t kMaxStacks = 4096;
constexpr uint64_t kMaxStackDepth = 1000;  // so that the stacks take at most 4096 * 1000 * 8 bytes
// libllama's check for left recursion calls itself along the beginnings of rules (8 MiB of stack are enough for 40,000,
// not for 80,000) and visits a rule once for each way to reach it.
constexpr uint64_t kMaxChain = 10'000;
constexpr uint64_t kMaxVisits = 10'000'000;
// A rule that contains itself, followed by something optional, adds these stacks with every level of nesting.
constexpr uint64_t kMaxStacksPerLevel = 64;
constexpr uint64_t kMaxSteps = 5'000'000;  // of our own search

uint64_t Add(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max() : a + b;
}

using Graph = std::vector<std::vector<uint32_t>>;

// The strongly connected component of each node (Tarjan, without recursion). An edge never leads to a component with a
// higher number.
std::vector<uint32_t> Components(const Graph& graph) {
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  struct Visit {
    uint32_t node;
    size_t next_edge = 0;
  };
  std::vector<uint32_t> component(graph.size(), kNone), order(graph.size(), kNone), low(graph.size());
  std::vector<uint32_t> open;  // visited nodes whose component is not known yet
  std::vector<Visit> visits;
  uint32_t n_visited = 0, n_components = 0;
  const auto enter = [&](uint32_t node) {
    order[node] = low[node] = n_visited++;
    open.push_back(node);
    visits.push_back({node});
  };
  for (uint32_t start = 0; start < graph.size(); ++start) {
    if (order[start] == kNone) enter(start);
    while (!visits.empty()) {
      Visit& visit = visits.back();
      const uint32_t node = visit.node;
      if (visit.next_edge < graph[node].size()) {
        const uint32_t to = graph[node][visit.next_edge++];
        if (order[to] == kNone) {
          enter(to);
        } else if (component[to] == kNone) {
          low[node] = std::min(low[node], order[to]);
        }
        continue;
      }
      visits.pop_back();
      if (!visits.empty()) low[visits.back().node] = std::min(low[visits.back().node], low[node]);
      if (low[node] != order[node]) continue;
      while (component[node] == kNone) {
        component[open.back()] = n_components;
        open.pop_back();
      }
      ++n_components;
    }
  }
  return component;
}

// The nodes sorted by their component: what a node leads to comes before it.
std::vector<uint32_t> CalleesFirst(const std::vector<uint32_t>& component) {
  std::vector<uint32_t> nodes(component.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) nodes[i] = i;
  std::sort(nodes.begin(), nodes.end(), [&](uint32_t a, uint32_t b) { return component[a] < component[b]; });
  return nodes;
}

class Checker {
 public:
  explicit Checker(const GbnfGrammar& grammar) : grammar_(grammar), n_rules_(grammar.rules.size()) {}

  Status Check() {
    FindNullable();
    FindBeginnings();
    if (Status status = CheckLeftRecursion(); !status.ok()) return status;
    if (Status status = CheckBegins(); !status.ok()) return status;
    if (Status status = CheckExpansion(); !status.ok()) return status;
    if (Status status = CheckPositions(); !status.ok()) return status;
    return CheckReturns();
  }

 private:
  // A rule that another begins with: everything before it can be empty.
  struct Beginning {
    uint32_t rule;
    bool last;   // nothing follows it in its alternative, so libllama's stack does not grow
    bool plain;  // everything before it has an empty alternative of its own, so libllama detects it too
  };

  Status Refuse(size_t rule, std::string_view problem) const {
    return InvalidArgument(fmt::format("the grammar cannot be used: rule {} {}", grammar_.Name(rule), problem),
                           "grammar");
  }

  // Calls body(first, end) with the indexes of each alternative; end is that of the kAlternative or kEnd.
  template <typename Body>
  void ForAlternatives(size_t rule, Body body) const {
    const auto& elements = grammar_.rules[rule];
    for (size_t first = 0, i = 0; i < elements.size(); ++i) {
      if (!elements[i].ends()) continue;
      body(first, i);
      first = i + 1;
    }
  }

  void FindNullable() {
    nullable_.assign(n_rules_, false);
    empty_alternative_.assign(n_rules_, false);
    struct Alternative {
      uint32_t rule;
      size_t missing;  // of its elements, those not known to be nullable
    };
    std::vector<Alternative> alternatives;
    Graph users(n_rules_);  // the alternatives a rule occurs in
    std::vector<uint32_t> found;
    const auto mark = [&](uint32_t rule) {
      if (!nullable_[rule]) found.push_back(rule);
      nullable_[rule] = true;
    };
    for (uint32_t rule = 0; rule < n_rules_; ++rule) {
      const auto& elements = grammar_.rules[rule];
      ForAlternatives(rule, [&](size_t first, size_t end) {
        if (first == end) {
          empty_alternative_[rule] = true;
          mark(rule);
        }
        for (size_t i = first; i < end; ++i) {
          if (elements[i].is_rule()) users[elements[i].value].push_back(static_cast<uint32_t>(alternatives.size()));
        }
        alternatives.push_back({rule, end - first});
      });
    }
    while (!found.empty()) {
      const uint32_t rule = found.back();
      found.pop_back();
      for (uint32_t user : users[rule]) {
        if (--alternatives[user].missing == 0) mark(alternatives[user].rule);
      }
    }
  }

  void FindBeginnings() {
    beginnings_.resize(n_rules_);
    begins_with_text_.assign(n_rules_, false);
    own_stacks_.assign(n_rules_, 0);
    for (size_t rule = 0; rule < n_rules_; ++rule) {
      const auto& elements = grammar_.rules[rule];
      ForAlternatives(rule, [&](size_t first, size_t end) {
        bool plain = true;
        for (size_t i = first; i < end; ++i) {
          ++own_stacks_[rule];
          if (!elements[i].is_rule()) {
            begins_with_text_[rule] = true;
            break;
          }
          const uint32_t to = elements[i].value;
          beginnings_[rule].push_back({to, i + 1 == end, plain});
          if (!nullable_[to]) break;
          plain = plain && empty_alternative_[to];
        }
      });
    }
  }

  Status CheckLeftRecursion() {
    Graph plain(n_rules_), all(n_rules_);
    for (size_t rule = 0; rule < n_rules_; ++rule) {
      for (const Beginning& beginning : beginnings_[rule]) {
        all[rule].push_back(beginning.rule);
        if (beginning.plain) plain[rule].push_back(beginning.rule);
      }
    }
    const std::vector<uint32_t> plain_component = Components(plain);
    component_ = Components(all);
    // Cycles that libllama does not detect do no harm if its stack is the same after each round.
    for (size_t rule = 0; rule < n_rules_; ++rule) {
      for (const Beginning& beginning : beginnings_[rule]) {
        const bool seen = beginning.plain && plain_component[rule] == plain_component[beginning.rule];
        const bool grows = !beginning.last && component_[rule] == component_[beginning.rule];
        if (seen || grows) return Refuse(rule, "can begin with itself (left recursion)");
      }
    }
    return CheckVisits(plain, CalleesFirst(plain_component));
  }

  // The cost of libllama's own check for left recursion, in the order in which it goes through the rules.
  Status CheckVisits(const Graph& plain, const std::vector<uint32_t>& callees_first) const {
    std::vector<uint64_t> cost(n_rules_), depth(n_rules_);
    for (uint32_t rule : callees_first) {
      cost[rule] = grammar_.rules[rule].size();
      for (uint32_t to : plain[rule]) {
        cost[rule] = Add(cost[rule], cost[to]);
        depth[rule] = std::max(depth[rule], depth[to] + 1);
      }
      if (depth[rule] > kMaxChain) {
        return Refuse(rule, fmt::format("begins with a chain of more than {} rules", kMaxChain));
      }
    }
    std::vector<bool> visited(n_rules_);
    std::vector<uint32_t> todo;
    uint64_t total = 0;
    for (uint32_t start = 0; start < n_rules_; ++start) {
      if (visited[start]) continue;
      total = Add(total, cost[start]);
      if (total > kMaxVisits) return Refuse(start, "can begin in too many ways");
      visited[start] = true;
      todo.push_back(start);
      while (!todo.empty()) {
        const uint32_t rule = todo.back();
        todo.pop_back();
        for (uint32_t to : plain[rule]) {
          if (!visited[to]) todo.push_back(to);
          visited[to] = true;
        }
      }
    }
    return {};
  }

  // A rule that is neither empty nor begins with text leaves libllama without any stack.
  Status CheckBegins() const {
    std::vector<bool> begins = begins_with_text_;
    Graph users(n_rules_);
    std::vector<uint32_t> found;
    for (uint32_t rule = 0; rule < n_rules_; ++rule) {
      for (const Beginning& beginning : beginnings_[rule]) users[beginning.rule].push_back(rule);
      if (begins[rule]) found.push_back(rule);
    }
    while (!found.empty()) {
      const uint32_t rule = found.back();
      found.pop_back();
      for (uint32_t user : users[rule]) {
        if (!begins[user]) found.push_back(user);
        begins[user] = true;
      }
    }
    for (size_t rule = 0; rule < n_rules_; ++rule) {
      if (!begins[rule] && !nullable_[rule]) return Refuse(rule, "never comes to an end: it leads only to itself");
    }
    return {};
  }

  // Counts how many stacks libllama makes of each rule, and how deep they are. A rule at the end of an alternative
  // gives the same stacks wherever it is reached from, so it counts once.
  Status CheckExpansion() {
    stacks_.assign(n_rules_, 0);
    std::vector<uint64_t> own(n_rules_), own_depth(n_rules_);
    // In the order of the components, so that the numbers of rules that do not stand last are already known.
    const std::vector<uint32_t> callees_first = CalleesFirst(component_);
    std::vector<uint64_t> depth(n_rules_);
    std::vector<uint32_t> seen_for(n_rules_, std::numeric_limits<uint32_t>::max());
    std::vector<uint32_t> todo;
    uint64_t steps = 0;
    for (size_t begin = 0, end = 0; begin < n_rules_; begin = end) {
      while (end < n_rules_ && component_[callees_first[end]] == component_[callees_first[begin]]) ++end;
      for (size_t i = begin; i < end; ++i) {
        const uint32_t rule = callees_first[i];
        own[rule] = own_stacks_[rule];
        for (const Beginning& beginning : beginnings_[rule]) {
          if (beginning.last) continue;
          own[rule] = Add(own[rule], stacks_[beginning.rule]);
          own_depth[rule] = std::max(own_depth[rule], depth[beginning.rule] + 1);
        }
      }
      for (size_t i = begin; i < end; ++i) {
        const uint32_t rule = callees_first[i];
        todo.assign(1, rule);
        seen_for[rule] = rule;
        while (!todo.empty()) {
          const uint32_t reached = todo.back();
          todo.pop_back();
          // A chain of rules need not be followed again for each of its members.
          const bool chain = todo.empty() && component_[reached] < component_[rule];
          stacks_[rule] = Add(stacks_[rule], chain ? stacks_[reached] : own[reached]);
          depth[rule] = std::max(depth[rule], chain ? depth[reached] : own_depth[reached]);
          if (stacks_[rule] > kMaxStacks) {
            return Refuse(rule, fmt::format("can begin in more than {} ways", kMaxStacks));
          }
          if (chain) break;
          steps += 1 + beginnings_[reached].size();
          if (steps > kMaxSteps) return Refuse(rule, "is one of too many that begin in many ways");
          for (const Beginning& beginning : beginnings_[reached]) {
            if (beginning.last && seen_for[beginning.rule] != rule) todo.push_back(beginning.rule);
            if (beginning.last) seen_for[beginning.rule] = rule;
          }
        }
        if (depth[rule] > kMaxStackDepth) {
          return Refuse(rule, fmt::format("begins with rules nested more than {} deep", kMaxStackDepth));
        }
      }
    }
    return {};
  }

  // The same check as CheckExpansion, for every position within a rule.
  Status CheckPositions() {
    rest_.resize(n_rules_);
    for (size_t rule = 0; rule < n_rules_; ++rule) {
      const auto& elements = grammar_.rules[rule];
      rest_[rule].resize(elements.size());
      bool too_many = false;
      ForAlternatives(rule, [&](size_t first, size_t end) {
        rest_[rule][end] = {0, true};
        for (size_t i = end; i-- > first;) {
          Rest& rest = rest_[rule][i];
          const bool is_rule = elements[i].is_rule();
          rest.stacks = 1 + (is_rule ? stacks_[elements[i].value] : 0);
          const bool skips = is_rule && nullable_[elements[i].value];
          if (skips) rest.stacks = Add(rest.stacks, rest_[rule][i + 1].stacks);
          rest.nullable = skips && rest_[rule][i + 1].nullable;
          too_many = too_many || rest.stacks > kMaxStacks;
        }
      });
      if (too_many) return Refuse(rule, fmt::format("can go on in more than {} ways", kMaxStacks));
    }
    return {};
  }

  // At the end of a rule libllama continues with what follows where it was used; if that may be empty, also with what
  // follows the using rule, and so on. All these stacks exist at the same time.
  Status CheckReturns() const {
    Graph returns(n_rules_);
    for (size_t user = 0; user < n_rules_; ++user) {
      const auto& elements = grammar_.rules[user];
      for (size_t i = 0; i < elements.size(); ++i) {
        if (elements[i].is_rule() && rest_[user][i + 1].nullable) returns[user].push_back(elements[i].value);
      }
    }
    const std::vector<uint32_t> component = Components(returns);
    std::vector<uint32_t> users_first = CalleesFirst(component);
    std::reverse(users_first.begin(), users_first.end());
    std::vector<uint64_t> max_stacks(n_rules_);  // by component: after the end of one of its rules
    for (const bool nullable : {false, true}) {
      for (uint32_t user : users_first) {
        const auto& elements = grammar_.rules[user];
        for (size_t i = 0; i < elements.size(); ++i) {
          if (!elements[i].is_rule() || rest_[user][i + 1].nullable != nullable) continue;
          const uint64_t stacks = rest_[user][i + 1].stacks;
          const uint32_t from = component[user], to = component[elements[i].value];
          if (nullable && from == to) {
            if (stacks <= kMaxStacksPerLevel) continue;
            return Refuse(user, fmt::format("nests in itself and can then go on in more than {} ways or end",
                                            kMaxStacksPerLevel));
          }
          max_stacks[to] = std::max(max_stacks[to], Add(stacks, nullable ? max_stacks[from] : 0));
          if (max_stacks[to] > kMaxStacks) {
            return Refuse(elements[i].value, fmt::format("can be followed by more than {} things", kMaxStacks));
          }
        }
      }
    }
    return {};
  }

  // What follows in an alternative, from some element on.
  struct Rest {
    uint64_t stacks = 0;
    bool nullable = false;
  };

  const GbnfGrammar& grammar_;
  const size_t n_rules_;
  std::vector<bool> nullable_;           // can match the empty text
  std::vector<bool> empty_alternative_;  // has an alternative without elements; libllama looks only for these
  std::vector<std::vector<Beginning>> beginnings_;
  std::vector<bool> begins_with_text_;   // some alternative has text, not only rules, at its beginning
  std::vector<uint64_t> own_stacks_;     // positions at the beginning of alternatives
  std::vector<uint32_t> component_;      // of the graph of all beginnings
  std::vector<uint64_t> stacks_;         // made from a rule
  std::vector<std::vector<Rest>> rest_;  // [rule][element]
};

}  // namespace

Status CheckGbnf(std::string_view text, const GbnfTokenTest& is_token) {
  const Result<GbnfGrammar> grammar = ParseGbnf(text, is_token);
  if (!grammar.ok()) return grammar.status();
  if (Status status = Checker(*grammar).Check(); !status.ok()) return status;
  return CheckGbnfAmbiguity(*grammar);
}

}  // namespace outrider
