#include "drafters/ngram_simple.h"

#include <cstdint>
#include <memory>

#include "drafters/ngram_index.h"

namespace outrider {
namespace {

constexpr int kLongestMatch = NgramOptions::kLongest;  // tokens: how far back a match is followed to measure its length

// Where an n-gram stood.
struct Places {
  uint32_t next = 0;   // the position after its latest occurrence
  int32_t hits = 0;    // occurrences
  int32_t agreed = 0;  // how many of them were followed by the same token as the one before
};

class NgramSimple : public NgramIndexDrafter<Places> {
 public:
  NgramSimple(const NgramOptions& options, int n_sequences) : NgramIndexDrafter("ngram-simple", options, n_sequences) {}

 protected:
  void Learn(SeqId seq, std::span<const Token> history, size_t position) override {
    Places* places = EntryBefore(seq, history, position);
    if (places == nullptr) return;
    if (places->hits > 0 && places->next < position && history[places->next] == history[position]) ++places->agreed;
    ++places->hits;
    places->next = static_cast<uint32_t>(position);
  }

  void Extend(SeqId seq, Continuation& text) override {
    const Places* places = EntryAtEnd(seq, text);
    if (places == nullptr || places->hits < options_.min_hits) return;
    const int matched = MatchLength(text, places->next);
    if (matched < options_.size_n) return;

    // The copied text may reach into the draft itself, so that a repeated passage shorter than the draft is repeated
    // again.
    if (!text.Append(text[places->next], MatchConfidence(places->agreed, places->hits - 1, matched))) return;
    for (int i = 1; i < options_.size_m; ++i) {
      const Token token = text[places->next + static_cast<size_t>(i)];
      if (!text.Append(token, MatchConfidence(0, 0, matched + i))) return;
    }
  }

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
};

}  // namespace

DrafterKind NgramSimpleKind() {
  return {"ngram-simple", "copies what followed the last occurrence of the last size_n tokens",
          [](DrafterParameters& parameters, const DrafterEnvironment& environment) -> Result<std::unique_ptr<Drafter>> {
            return std::unique_ptr<Drafter>(
                std::make_unique<NgramSimple>(NgramOptions(parameters), environment.n_sequences));
          }};
}

}  // namespace outrider
