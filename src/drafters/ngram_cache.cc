#include "drafters/ngram_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "drafters/hash_index.h"
#include "drafters/lookup.h"
#include "drafters/next_tokens.h"
#include "drafters/ngram_cache_file.h"
#include "drafters/ngram_counts.h"
#include "drafters/per_owner.h"

namespace outrider {
namespace {

constexpr size_t kStaticNgram = 2;  // tokens: the length that llama-lookup-create counts
constexpr size_t kMaxWeighed = 8;   // max number of followers of an n-gram that are compared

constexpr size_t kSavedNgrams = size_t{1} << 18;  // max n-grams of the dynamic file and of the owner without a name
constexpr size_t kOwnerNgrams = size_t{1} << 16;  // max n-grams of each owner with a name
constexpr size_t kMaxLearned = 4096;  // last tokens of an answer that are remembered: End must not take long

struct Options {
  std::string static_path;
  std::string dynamic_path;
  int owners;
  bool remember;  // answers, for later requests
};

// How often an n-gram must have been seen, and with which share the same token must have followed it, before that token
// is drafted. By the length of the n-gram, less 1.
struct Thresholds {
  std::array<int, kMaxCachedNgram> min_seen;
  std::array<int, kMaxCachedNgram> min_percent;
};
constexpr Thresholds kLax = {{2, 2, 1, 1}, {66, 50, 50, 50}};     // for the sequence itself, and the corpus
constexpr Thresholds kStrict = {{4, 3, 2, 2}, {75, 66, 66, 66}};  // for other sequences

// What was learned over requests.
struct Memory {
  NgramCounts counts;
  size_t max_ngrams;
  bool changed = false;

  void Learn(std::span<const Token> history, size_t first) {
    for (size_t position = first; position < history.size(); ++position) {
      for (size_t n = 1; n <= std::min<size_t>(position, kMaxCachedNgram); ++n) {
        counts.Add(MakeCachedNgram(history.subspan(position - n, n)), history[position]);
      }
      changed = true;
    }
    while (counts.size() > max_ngrams) counts.Age();
  }
};

struct Guess {
  Token token;
  float confidence;
};

// The end of a text: its last tokens, at most kMaxCachedNgram.
class Ending {
 public:
  explicit Ending(const Continuation& text) : size_(std::min<size_t>(text.length(), kMaxCachedNgram)) {
    text.CopyLast(std::span(tokens_).first(size_));
  }
  size_t size() const { return size_; }
  std::span<const Token> Last(size_t n) const { return std::span(tokens_).first(size_).last(n); }

 private:
  std::array<Token, kMaxCachedNgram> tokens_{};
  size_t size_;
};

class NgramCache : public LookupDrafter {
 public:
  NgramCache(NgramCounts corpus, NgramCounts dynamic, const Options& options, int n_sequences)
      : LookupDrafter("ngram-cache", n_sequences),
        corpus_(std::move(corpus)),
        options_(options),
        unnamed_(std::make_shared<Memory>(Memory{std::move(dynamic), kSavedNgrams})),
        named_(options.owners,
               [] {
                 return std::make_shared<Memory>(Memory{{}, kOwnerNgrams});
               }),
        sequences_(static_cast<size_t>(n_sequences)) {}

  ~NgramCache() override {
    if (options_.dynamic_path.empty() || !unnamed_->changed) return;
    const Status status = WriteNgramCache(options_.dynamic_path, unnamed_->counts);
    if (!status.ok()) LogError("ngram-cache: what was learned is lost: {}", status.message());
  }

 protected:
  void Open(SeqId seq, const DraftContext& context, size_t n_prompt) override {
    auto memory = context.owner.empty() ? unnamed_ : named_.Get(context.owner);
    sequences_[static_cast<size_t>(seq)] = {n_prompt, std::move(memory), {}};
    sequences_[static_cast<size_t>(seq)].context.Reserve(2 * n_prompt);
  }

  void Learn(SeqId seq, std::span<const Token> history, size_t position) override {
    Sequence& sequence = sequences_[static_cast<size_t>(seq)];
    for (size_t n = 1; n <= std::min<size_t>(position, kMaxCachedNgram); ++n) {
      NextTokens* next = sequence.context.FindOrAdd(HashNgram(history.subspan(position - n, n)));
      if (next != nullptr) next->Add(history[position]);
    }
  }

  void Extend(SeqId seq, Continuation& text) override {
    const Sequence& sequence = sequences_[static_cast<size_t>(seq)];
    if (sequence.memory == nullptr) return;
    while (text.room() > 0) {
      const std::optional<Guess> guess = GuessNext(sequence, Ending(text));
      if (!guess || !text.Append(guess->token, guess->confidence)) return;
    }
  }

  // Only answers are remembered: a prompt comes again with every turn of a conversation and would be counted each time.
  void Close(SeqId seq, std::span<const Token> history, bool complete) override {
    Sequence& sequence = sequences_[static_cast<size_t>(seq)];
    if (complete && options_.remember && sequence.memory != nullptr) {
      const size_t first = history.size() - std::min(history.size(), kMaxLearned);
      sequence.memory->Learn(history, std::max(sequence.n_prompt, first));
    }
    sequence = {};
  }

 private:
  struct Sequence {
    size_t n_prompt = 0;
    std::shared_ptr<Memory> memory;  // of the request's owner; null between requests
    HashIndex<NextTokens> context;
  };

  std::optional<Guess> GuessNext(const Sequence& sequence, const Ending& ending) const {
    const NgramCounts::Followers* corpus =
        ending.size() < kStaticNgram ? nullptr : corpus_.Find(MakeCachedNgram(ending.Last(kStaticNgram)));
    for (size_t n = ending.size(); n > 0; --n) {
      const NextTokens* next = sequence.context.Find(HashNgram(ending.Last(n)));
      if (next == nullptr) continue;
      if (auto guess = Weigh(next->tokens(), next->total(), n, kLax, corpus)) return guess;
    }
    for (size_t n = ending.size(); n > 0; --n) {
      if (auto guess = Weigh(sequence.memory->counts, MakeCachedNgram(ending.Last(n)), n, kStrict, corpus)) {
        return guess;
      }
    }
    if (corpus == nullptr) return {};
    return Weigh(corpus_, MakeCachedNgram(ending.Last(kStaticNgram)), kStaticNgram, kLax, nullptr);
  }

  std::optional<Guess> Weigh(const NgramCounts& counts, const CachedNgram& ngram, size_t n,
                             const Thresholds& thresholds, const NgramCounts::Followers* corpus) const {
    const NgramCounts::Followers* followers = counts.Find(ngram);
    if (followers == nullptr) return {};
    std::array<CountedToken, kMaxWeighed> top;
    const size_t n_top = counts.Top(*followers, top);
    return Weigh(std::span(top).first(n_top), followers->total(), n, thresholds, corpus);
  }

  // The follower with the highest product of counts here and in the corpus, if it followed often enough.
  std::optional<Guess> Weigh(std::span<const CountedToken> followers, int64_t total, size_t n,
                             const Thresholds& thresholds, const NgramCounts::Followers* corpus) const {
    if (total < thresholds.min_seen[n - 1]) return {};
    const CountedToken* best = nullptr;
    double best_weight = 0;
    for (const CountedToken& follower : followers) {
      const int32_t in_corpus = corpus == nullptr ? 0 : corpus_.Count(*corpus, follower.token);
      const double weight = follower.count * (in_corpus > 0 ? 100.0 * in_corpus : 1.0);
      if (weight <= best_weight) continue;
      best = &follower;
      best_weight = weight;
    }
    if (best == nullptr || int64_t{100} * best->count < thresholds.min_percent[n - 1] * total) return {};
    return Guess{best->token, MatchConfidence(best->count, total, static_cast<int>(n))};
  }

  const NgramCounts corpus_;  // the static level
  const Options options_;
  const std::shared_ptr<Memory> unnamed_;
  PerOwner<Memory> named_;
  std::vector<Sequence> sequences_;
};

Status Prefixed(const char* what, const Status& status) {
  return InvalidArgument(fmt::format("ngram-cache: {}: {}", what, status.message()));
}

// A dynamic file that is not there yet is written at the end; its folder must exist.
Result<NgramCounts> ReadDynamic(const std::string& path, int vocabulary_size) {
  Result<NgramCounts> counts = ReadNgramCache(path, vocabulary_size);
  if (counts.ok() && counts->size() > kSavedNgrams) {
    return InvalidArgument(
        fmt::format("{} has {} n-grams and may have {}; large statistics belong into the static file", path,
                    counts->size(), kSavedNgrams));
  }
  if (counts.status().code() != StatusCode::kNotFound) return counts;
  std::error_code error;
  const auto folder = std::filesystem::absolute(path, error).parent_path();
  if (!std::filesystem::is_directory(folder, error)) {
    return InvalidArgument(fmt::format("there is no folder {} to save {} in", folder.string(), path));
  }
  return NgramCounts();
}

Result<std::unique_ptr<Drafter>> Make(DrafterParameters& parameters, const DrafterEnvironment& environment) {
  const Options options = {parameters.Text("static", ""), parameters.Text("dynamic", ""),
                           parameters.Integer("owners", 16, 1, 1024),
                           parameters.Flag("remember", environment.remember)};
  if (Status status = parameters.Check(); !status.ok()) return status;  // before files are read

  const int vocabulary_size = environment.tokenizer.vocabulary_size();
  Result<NgramCounts> corpus = NgramCounts(), dynamic = NgramCounts();
  if (!options.static_path.empty()) corpus = ReadNgramCache(options.static_path, vocabulary_size);
  if (!corpus.ok()) return Prefixed("static", corpus.status());
  if (!options.dynamic_path.empty()) dynamic = ReadDynamic(options.dynamic_path, vocabulary_size);
  if (!dynamic.ok()) return Prefixed("dynamic", dynamic.status());
  return std::unique_ptr<Drafter>(
      std::make_unique<NgramCache>(std::move(*corpus), std::move(*dynamic), options, environment.n_sequences));
}

}  // namespace

DrafterKind NgramCacheKind() {
  return {"ngram-cache", "statistics of short n-grams: of the sequence, of earlier answers and of a corpus file", Make};
}

}  // namespace outrider
