// Any bytes as an n-gram cache file: refused, or statistics that are sound and keep every number when written again.
#include <string>
#include <string_view>

#include "drafters/ngram_cache_file.h"
#include "require.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 300;  // small, so that many random tokens are in it

void Check(std::string_view bytes) {
  const Result<NgramCounts> counts = DecodeNgramCache(bytes, kVocabulary);
  if (!counts.ok()) return Require(counts.status().code() == StatusCode::kInvalidArgument, "a bad file is a bad flag");
  Require(counts->CheckInvariants(), "an accepted file has sound statistics");

  const std::string written = EncodeNgramCache(*counts);
  Require(written.size() == bytes.size(), "nothing is lost");
  const Result<NgramCounts> again = DecodeNgramCache(written, kVocabulary);
  Require(again.ok() && again->size() == counts->size(), "what is written can be read");
  counts->ForEach([&](const CachedNgram& ngram, std::span<const CountedToken> tokens) {
    const NgramCounts::Followers* followers = again->Find(ngram);
    Require(followers != nullptr, "all n-grams are there again");
    Require(again->Count(*followers, tokens[0].token) == tokens[0].count, "with their counts");
  });
}

// Learning on top of a file keeps it sound.
void Learn(std::string_view bytes) {
  Result<NgramCounts> counts = DecodeNgramCache(bytes, kVocabulary);
  if (!counts.ok()) return;
  const NgramCounts before = *counts;
  before.ForEach([&](const CachedNgram& ngram, std::span<const CountedToken> tokens) {
    counts->Add(ngram, tokens.back().token);
    counts->Add(ngram, 0);
  });
  Require(counts->CheckInvariants(), "learning keeps the order");
  counts->Age();
  Require(counts->CheckInvariants(), "and so does forgetting");
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  outrider::Check(bytes);
  outrider::Learn(bytes);
  return 0;
}
