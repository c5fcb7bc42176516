#include "drafters/ngram_map.h"

#include <memory>
#include <utility>

#include "drafters/next_tokens.h"
#include "drafters/ngram_index.h"

namespace outrider {
namespace {

enum class Choice { kLatest, kMostFrequent };

// What followed a key.
struct Values {
  NextTokens tokens;
  Token latest = kNoToken;
  int32_t repeated = 0;  // times a token followed that was the latest already

  void Add(Token token) {
    if (tokens.total() > 0 && token == latest) ++repeated;
    tokens.Add(token);
    latest = token;
  }
};

class NgramMap : public NgramIndexDrafter<Values> {
 public:
  NgramMap(std::string name, const NgramOptions& options, Choice choice, int n_sequences)
      : NgramIndexDrafter(std::move(name), options, n_sequences), choice_(choice) {}

 protected:
  void Learn(SeqId seq, std::span<const Token> history, size_t position) override {
    Values* values = EntryBefore(seq, history, position);
    if (values != nullptr) values->Add(history[position]);
  }

  void Extend(SeqId seq, Continuation& text) override {
    for (int i = 0; i < options_.size_m; ++i) {
      const Values* values = EntryAtEnd(seq, text);
      if (values == nullptr || values->tokens.total() < options_.min_hits || !AppendOne(*values, text)) return;
    }
  }

 private:
  bool AppendOne(const Values& values, Continuation& text) const {
    const int total = values.tokens.total();
    if (choice_ == Choice::kLatest) {
      return text.Append(values.latest, MatchConfidence(values.repeated, total - 1, options_.size_n));
    }
    const CountedToken& best = values.tokens.best();
    const int others = total - best.count;
    return best.count >= 2 * others && text.Append(best.token, MatchConfidence(best.count, total, options_.size_n));
  }

  const Choice choice_;
};

DrafterKind Kind(const std::string& name, const std::string& summary, Choice choice) {
  return {
      name, summary,
      [=](DrafterParameters& parameters, const DrafterEnvironment& environment) -> Result<std::unique_ptr<Drafter>> {
        return std::unique_ptr<Drafter>(
            std::make_unique<NgramMap>(name, NgramOptions(parameters), choice, environment.n_sequences));
      }};
}

}  // namespace

DrafterKind NgramMapKKind() {
  return Kind("ngram-map-k", "follows a map from the last size_n tokens to the token that came next", Choice::kLatest);
}

DrafterKind NgramMapK4vKind() {
  return Kind("ngram-map-k4v", "like ngram-map-k, but weighs up to four tokens that came next", Choice::kMostFrequent);
}

}  // namespace outrider
