// What ngram-simple and ngram-map have in common: llama.cpp's three parameters, and for each sequence an index from its
// n-grams to an entry for each.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "drafters/hash_index.h"
#include "drafters/lookup.h"
#include "drafters/registry.h"

namespace outrider {

struct NgramOptions {
  static constexpr int kLongest = 64;

  explicit NgramOptions(DrafterParameters& parameters)
      : size_n(parameters.Integer("size_n", 12, 1, kLongest)),
        size_m(parameters.Integer("size_m", 48, 1, 1024)),
        min_hits(parameters.Integer("min_hits", 1, 1, 1'000'000)) {}

  int size_n;    // tokens that must match
  int size_m;    // tokens to draft, at most
  int min_hits;  // times an n-gram must have occurred
};

template <typename Entry>
class NgramIndexDrafter : public LookupDrafter {
 public:
  NgramIndexDrafter(std::string name, const NgramOptions& options, int n_sequences)
      : LookupDrafter(std::move(name), n_sequences), options_(options), sequences_(static_cast<size_t>(n_sequences)) {}

 protected:
  void Open(SeqId seq, const DraftContext&, size_t n_prompt) final {
    Index(seq) = {};
    Index(seq).Reserve(n_prompt);
  }

  void Close(SeqId seq, std::span<const Token>, bool) final { Index(seq) = {}; }

  // The entry of the n-gram that ends before `position`; null if there is none, or no room for one.
  Entry* EntryBefore(SeqId seq, std::span<const Token> history, size_t position) {
    const auto n = static_cast<size_t>(options_.size_n);
    return position < n ? nullptr : Index(seq).FindOrAdd(HashNgram(history.subspan(position - n, n)));
  }

  // The entry of the n-gram at the text's end; null if it is not known.
  const Entry* EntryAtEnd(SeqId seq, const Continuation& text) {
    const auto n = static_cast<size_t>(options_.size_n);
    return text.length() < n ? nullptr : Index(seq).Find(text.HashLast(n));
  }

  const NgramOptions options_;

 private:
  HashIndex<Entry>& Index(SeqId seq) { return sequences_[static_cast<size_t>(seq)]; }

  std::vector<HashIndex<Entry>> sequences_;
};

}  // namespace outrider
