#include "drafters/ngram_counts.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace outrider {
namespace {

constexpr int kMaxSearched = 256;  // followers that Add searches
constexpr int kMaxCounted = 64;    // followers that Count searches: fewer, because it runs for every drafted token

}  // namespace

void NgramCounts::Add(const CachedNgram& ngram, Token token) {
  Followers* followers = index_.FindOrAdd(HashNgram(ngram));
  if (followers == nullptr) return;
  if (followers->first_ == Followers::kNone) {
    followers->ngram_ = ngram;
    followers->first_ = AddNode({token, 1});
    followers->total_ = 1;
    return;
  }

  uint32_t at = followers->first_;
  uint32_t first_equal = at;  // the first with the same count as `at`
  for (int searched = 1; nodes_[at].counted.token != token; ++searched) {
    if (searched == kMaxSearched) return;
    const uint32_t next = nodes_[at].next;
    if (next == Followers::kNone) {
      const uint32_t node = AddNode({token, 1});
      nodes_[at].next = node;
      ++followers->total_;
      return;
    }
    if (nodes_[next].counted.count != nodes_[at].counted.count) first_equal = next;
    at = next;
  }
  if (nodes_[at].counted.count == std::numeric_limits<int32_t>::max()) return;
  std::swap(nodes_[at].counted, nodes_[first_equal].counted);  // so that the list stays in order
  ++nodes_[first_equal].counted.count;
  ++followers->total_;
}

bool NgramCounts::Insert(const CachedNgram& ngram, std::span<const CountedToken> tokens) {
  Followers* followers = index_.FindOrAdd(HashNgram(ngram));
  if (followers == nullptr || followers->first_ != Followers::kNone) return false;
  followers->ngram_ = ngram;
  followers->first_ = static_cast<uint32_t>(nodes_.size());
  for (const CountedToken& counted : tokens) {
    followers->total_ += counted.count;
    const uint32_t node = AddNode(counted);
    nodes_[node].next = node + 1;
  }
  nodes_.back().next = Followers::kNone;
  return true;
}

const NgramCounts::Followers* NgramCounts::Find(const CachedNgram& ngram) const {
  return index_.Find(HashNgram(ngram));
}

size_t NgramCounts::Top(const Followers& followers, std::span<CountedToken> tokens) const {
  size_t n = 0;
  for (uint32_t at = followers.first_; at != Followers::kNone && n < tokens.size(); at = nodes_[at].next) {
    tokens[n++] = nodes_[at].counted;
  }
  return n;
}

int32_t NgramCounts::Count(const Followers& followers, Token token) const {
  int searched = 0;
  for (uint32_t at = followers.first_; at != Followers::kNone && searched < kMaxCounted; at = nodes_[at].next) {
    if (nodes_[at].counted.token == token) return nodes_[at].counted.count;
    ++searched;
  }
  return 0;
}

void NgramCounts::Age() {
  NgramCounts aged;
  std::vector<CountedToken> left;
  ForEach([&](const CachedNgram& ngram, std::span<const CountedToken> tokens) {
    left.clear();
    for (const CountedToken& counted : tokens) {
      if (counted.count > 1) left.push_back({counted.token, counted.count / 2});
    }
    if (!left.empty()) aged.Insert(ngram, left);
  });
  *this = std::move(aged);
}

bool NgramCounts::CheckInvariants() const {
  bool right = true;
  ForEach([&](const CachedNgram& ngram, std::span<const CountedToken> tokens) {
    int64_t total = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      total += tokens[i].count;
      right = right && tokens[i].count > 0 && (i == 0 || tokens[i].count <= tokens[i - 1].count);
    }
    const Followers* followers = Find(ngram);
    right = right && followers != nullptr && followers->total_ == total && total > 0;
  });
  return right;
}

uint32_t NgramCounts::AddNode(const CountedToken& counted) {
  nodes_.push_back({counted, Followers::kNone});
  return static_cast<uint32_t>(nodes_.size() - 1);
}

}  // namespace outrider
