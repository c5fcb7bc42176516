// How long drafters that look things up take: microseconds of Propose and Commit at a history of 32k tokens.
//
// The history is pseudo-text: fresh words, then a copy of something earlier with a word changed here and there, and so
// on. No model is needed; drafters that need one are left out.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "drafters/registry.h"
#include "engine/fake_tokenizer.h"

namespace outrider {
namespace {

constexpr size_t kHistory = 32768;
constexpr size_t kSteps = 4096;
constexpr int kMaxTokens = 31;

std::vector<Token> PseudoText(size_t length) {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  std::vector<Token> text;
  while (text.size() < length) {
    const size_t fresh = 8 + below(64);
    for (size_t i = 0; i < fresh; ++i) text.push_back(static_cast<Token>(below(256)));
    const size_t copied = std::min(text.size(), 16 + below(256));
    for (size_t from = below(text.size() - copied + 1), end = from + copied; from < end; ++from) {
      text.push_back(below(64) == 0 ? static_cast<Token>(below(256)) : text[from]);
    }
  }
  text.resize(length);
  return text;
}

class Samples {
 public:
  template <typename Call>
  void Time(const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    microseconds_.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  double Quantile(double q) {
    const auto at = microseconds_.begin() + static_cast<ptrdiff_t>(q * static_cast<double>(microseconds_.size() - 1));
    std::nth_element(microseconds_.begin(), at, microseconds_.end());
    return *at;
  }

 private:
  std::vector<double> microseconds_;
};

void Measure(Drafter& drafter, const std::vector<Token>& text) {
  const auto history = [&](size_t length) { return std::span(text).first(length); };
  Samples begin, propose, commit;
  size_t drafted = 0;
  begin.Time([&] { drafter.Begin(0, history(kHistory), {}); });
  for (size_t length = kHistory; length < text.size(); ++length) {
    Proposal proposal{0, history(length), kMaxTokens, 0, 0, {}};
    proposal.draft.tokens.reserve(kMaxTokens);
    Proposal* asked[] = {&proposal};
    propose.Time([&] { drafter.Propose(asked); });
    commit.Time([&] { drafter.Commit(0, history(length + 1), 1); });
    drafted += proposal.draft.tokens.size();
  }
  fmt::print("{:14} {:8.2f} {:8.2f} {:8.2f} {:8.2f} {:10.0f} {:8.1f}\n", drafter.name(), propose.Quantile(0.5),
             propose.Quantile(0.99), commit.Quantile(0.5), commit.Quantile(0.99), begin.Quantile(0.5),
             static_cast<double>(drafted) / kSteps);
}

int Main() {
  const FakeTokenizer tokenizer;
  const std::vector<Token> text = PseudoText(kHistory + kSteps);
  fmt::print("{} tokens of history, drafts of up to {}; microseconds\n", kHistory, kMaxTokens);
  fmt::print("{:14} {:>17} {:>17} {:>10} {:>8}\n", "", "Propose p50  p99", "Commit p50  p99", "Begin", "drafted");
  for (const DrafterKind& kind : DrafterKinds()) {
    auto drafter = MakeDrafter({kind.name, {}}, {1, tokenizer, nullptr});
    if (drafter.ok() && !(*drafter)->computes()) Measure(**drafter, text);
  }
  return 0;
}

}  // namespace
}  // namespace outrider

int main() {
  return outrider::Main();
}
