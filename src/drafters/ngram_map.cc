#include "drafters/ngram_map.h"

#include <memory>
#include <utility>
#include <vector>

#include "drafters/hash_index.h"
#include "drafters/lookup.h"
#include "drafters/next_tokens.h"

namespace outrider {
namespace {

enum class Choice { kLatest, kMostFrequent };

struct Options {
  int size_n;
  int size_m;
  int min_hits;
  Choice choice;
};

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

class NgramMap : public LookupDrafter {
 public:
  NgramMap(std::string name, const Options& options, int n_sequences)
      : LookupDrafter(n_sequences),
        name_(std::move(name)),
        options_(options),
        sequences_(static_cast<size_t>(n_sequences)) {}

  std::string_view name() const override { return name_; }

 protected:
  void Open(SeqId seq, const DraftContext&, size_t n_prompt) override {
    sequences_[static_cast<size_t>(seq)] = {};
    sequences_[static_cast<size_t>(seq)].Reserve(n_prompt);
  }

  void Learn(SeqId seq, std::span<const Token> history, size_t position) override {
    const auto n = static_cast<size_t>(options_.size_n);
    if (position < n) return;
    Values* values = sequences_[static_cast<size_t>(seq)].FindOrAdd(HashNgram(history.subspan(position - n, n)));
    if (values != nullptr) values->Add(history[position]);
  }

  void Extend(SeqId seq, Continuation& text) override {
    const auto n = static_cast<size_t>(options_.size_n);
    if (text.length() < n) return;
    for (int i = 0; i < options_.size_m; ++i) {
      const Values* values = sequences_[static_cast<size_t>(seq)].Find(text.HashLast(n));
      if (values == nullptr || values->tokens.total() < options_.min_hits || !AppendOne(*values, text)) return;
    }
  }

  void Close(SeqId seq, std::span<const Token>, bool) override { sequences_[static_cast<size_t>(seq)] = {}; }

 private:
  bool AppendOne(const Values& values, Continuation& text) const {
    const int total = values.tokens.total();
    if (options_.choice == Choice::kLatest) {
      return text.Append(values.latest, MatchConfidence(values.repeated, total - 1, options_.size_n));
    }
    const CountedToken& best = values.tokens.best();
    const int others = total - best.count;
    return best.count >= 2 * others && text.Append(best.token, MatchConfidence(best.count, total, options_.size_n));
  }

  const std::string name_;
  const Options options_;
  std::vector<HashIndex<Values>> sequences_;
};

DrafterKind Kind(const std::string& name, const std::string& summary, Choice choice) {
  return {
      name, summary,
      [=](DrafterParameters& parameters, const DrafterEnvironment& environment) -> Result<std::unique_ptr<Drafter>> {
        const Options options = {parameters.Integer("size_n", 12, 1, 64), parameters.Integer("size_m", 48, 1, 1024),
                                 parameters.Integer("min_hits", 1, 1, 1'000'000), choice};
        return std::unique_ptr<Drafter>(std::make_unique<NgramMap>(name, options, environment.n_sequences));
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
