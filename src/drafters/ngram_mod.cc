#include "drafters/ngram_mod.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "drafters/hash_index.h"
#include "drafters/lookup.h"
#include "drafters/per_owner.h"

namespace outrider {
namespace {

struct Options {
  int n_match;
  int n_max;
  int n_min;
  int owners;
  bool remember;  // over requests
};

class Table {
 public:
  struct Entry {
    Token token = kNoToken;
    uint16_t tag = 0;    // more bits of the hash, to tell apart n-grams that share an entry
    uint8_t seen = 0;    // occurrences; 0 = empty
    uint8_t agreed = 0;  // how many of them were followed by the same token as the one before
  };

  void Add(uint64_t hash, Token token) {
    Entry& entry = entries_[hash % kEntries];
    if (entry.seen == 0 || entry.tag != Tag(hash)) entry = {token, Tag(hash), 0, 0};
    if (entry.seen == std::numeric_limits<uint8_t>::max()) {
      entry.seen /= 2;
      entry.agreed /= 2;
    }
    if (entry.seen > 0 && entry.token == token) ++entry.agreed;
    ++entry.seen;
    entry.token = token;
  }

  const Entry* Find(uint64_t hash) const {
    const Entry& entry = entries_[hash % kEntries];
    return entry.seen > 0 && entry.tag == Tag(hash) ? &entry : nullptr;
  }

 private:
  static constexpr size_t kEntries = size_t{1} << 20;  // 8 MiB

  static uint16_t Tag(uint64_t hash) { return static_cast<uint16_t>(hash >> 48); }

  std::vector<Entry> entries_ = std::vector<Entry>(kEntries);
};

class NgramMod : public LookupDrafter {
 public:
  NgramMod(const Options& options, int n_sequences)
      : LookupDrafter("ngram-mod", n_sequences),
        options_(options),
        tables_(options.owners, [] { return std::make_shared<Table>(); }),
        sequences_(static_cast<size_t>(n_sequences)) {}

 protected:
  void Open(SeqId seq, const DraftContext& context, size_t) override {
    sequences_[static_cast<size_t>(seq)] = options_.remember ? tables_.Get(context.owner) : std::make_shared<Table>();
  }

  void Learn(SeqId seq, std::span<const Token> history, size_t position) override {
    const auto n = static_cast<size_t>(options_.n_match);
    Table* table = sequences_[static_cast<size_t>(seq)].get();
    if (position < n || table == nullptr) return;
    table->Add(HashNgram(history.subspan(position - n, n)), history[position]);
  }

  void Extend(SeqId seq, Continuation& text) override {
    const auto n = static_cast<size_t>(options_.n_match);
    const Table* table = sequences_[static_cast<size_t>(seq)].get();
    if (text.length() < n || table == nullptr) return;
    Walk(*table, text);
    if (static_cast<int>(found_.size()) < options_.n_min) return;
    for (const Table::Entry& entry : found_) {
      if (!text.Append(entry.token, MatchConfidence(entry.agreed, entry.seen - 1, options_.n_match))) return;
    }
  }

  void Close(SeqId seq, std::span<const Token>, bool) override { sequences_[static_cast<size_t>(seq)] = nullptr; }

 private:
  // Fills found_ with the tokens that the table predicts: as many as there is room for, but at least n_min, because
  // shorter drafts are dropped.
  void Walk(const Table& table, const Continuation& text) {
    const auto n = static_cast<size_t>(options_.n_match);
    const auto max_found = static_cast<size_t>(std::min(options_.n_max, std::max(text.room(), options_.n_min)));
    found_.clear();
    path_.resize(n);
    text.CopyLast(path_);
    while (found_.size() < max_found) {
      const Table::Entry* entry = table.Find(HashNgram(std::span(path_).last(n)));
      if (entry == nullptr) return;
      found_.push_back(*entry);
      path_.push_back(entry->token);
    }
  }

  const Options options_;
  PerOwner<Table> tables_;
  std::vector<std::shared_ptr<Table>> sequences_;  // the table of each sequence's owner
  std::vector<Table::Entry> found_;                // scratch of Extend
  std::vector<Token> path_;
};

Result<std::unique_ptr<Drafter>> Make(DrafterParameters& parameters, const DrafterEnvironment& environment) {
  const int n_match = parameters.Integer("n_match", 24, 1, 64);
  const int n_max = parameters.Integer("n_max", 64, 1, 1024);
  const int n_min = parameters.Integer("n_min", std::min(48, n_max), 0, n_max);
  const int owners = parameters.Integer("owners", 16, 1, 1024);
  const bool remember = parameters.Flag("remember", environment.remember);
  const Options options = {n_match, n_max, n_min, owners, remember};
  return std::unique_ptr<Drafter>(std::make_unique<NgramMod>(options, environment.n_sequences));
}

}  // namespace

DrafterKind NgramModKind() {
  return {"ngram-mod", "looks up the last n_match tokens in a table of fixed size that all requests of an owner share",
          Make};
}

}  // namespace outrider
