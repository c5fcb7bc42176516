#include "drafters/ngram_simple.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "drafters/hash_index.h"
#include "drafters/lookup.h"

namespace outrider {
namespace {

constexpr int kLongestMatch = 64;  // how far back a match is followed to see how good it is

struct Options {
  int size_n;
  int size_m;
  int min_hits;
};

// Where an n-gram stood.
struct Places {
  uint32_t next = 0;   // the position after its latest occurrence
  int32_t hits = 0;    // occurrences
  int32_t agreed = 0;  // how many of them were followed by the same token as the one before
};

class NgramSimple : public LookupDrafter {
 public:
  NgramSimple(const Options& options, int n_sequences)
      : LookupDrafter(n_sequences), options_(options), sequences_(static_cast<size_t>(n_sequences)) {}

  std::string_view name() const override { return "ngram-simple"; }

 protected:
  void Open(SeqId seq, const DraftContext&, size_t n_prompt) override {
    sequences_[static_cast<size_t>(seq)] = {};
    sequences_[static_cast<size_t>(seq)].Reserve(n_prompt);
  }

  void Learn(SeqId seq, std::span<const Token> history, size_t position) override {
    const auto n = static_cast<size_t>(options_.size_n);
    if (position < n) return;
    Places* places = sequences_[static_cast<size_t>(seq)].FindOrAdd(HashNgram(history.subspan(position - n, n)));
    if (places == nullptr) return;
    if (places->hits > 0 && places->next < position && history[places->next] == history[position]) ++places->agreed;
    ++places->hits;
    places->next = static_cast<uint32_t>(position);
  }

  void Extend(SeqId seq, Continuation& text) override {
    const auto n = static_cast<size_t>(options_.size_n);
    if (text.length() < n) return;
    const Places* places = sequences_[static_cast<size_t>(seq)].Find(text.HashLast(n));
    if (places == nullptr || places->hits < options_.min_hits) return;
    const int matched = MatchLength(text, places->next);
    if (matched < options_.size_n) return;

    // What is copied may reach into the draft itself: so a loop shorter than the draft goes on.
    if (!text.Append(text[places->next], MatchConfidence(places->agreed, places->hits - 1, matched))) return;
    for (int i = 1; i < options_.size_m; ++i) {
      const Token token = text[places->next + static_cast<size_t>(i)];
      if (!text.Append(token, MatchConfidence(0, 0, matched + i))) return;
    }
  }

  void Close(SeqId seq, std::span<const Token>, bool) override { sequences_[static_cast<size_t>(seq)] = {}; }

 private:
  // How many tokens before `place` are the same as at the text's end.
  static int MatchLength(const Continuation& text, size_t place) {
    const size_t end = text.length();
    if (place >= end) return 0;
    int matched = 0;
    while (matched < kLongestMatch && static_cast<size_t>(matched) < place &&
           text[place - 1 - static_cast<size_t>(matched)] == text[end - 1 - static_cast<size_t>(matched)]) {
      ++matched;
    }
    return matched;
  }

  const Options options_;
  std::vector<HashIndex<Places>> sequences_;
};

}  // namespace

DrafterKind NgramSimpleKind() {
  return {"ngram-simple", "copies what followed the last occurrence of the last size_n tokens",
          [](DrafterParameters& parameters, const DrafterEnvironment& environment) -> Result<std::unique_ptr<Drafter>> {
            const Options options = {parameters.Integer("size_n", 12, 1, kLongestMatch),
                                     parameters.Integer("size_m", 48, 1, 1024),
                                     parameters.Integer("min_hits", 1, 1, 1'000'000)};
            return std::unique_ptr<Drafter>(std::make_unique<NgramSimple>(options, environment.n_sequences));
          }};
}

}  // namespace outrider
