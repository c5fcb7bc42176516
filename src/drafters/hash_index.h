// The hash of an n-gram, and a table from such hashes to values; used by drafters that look things up.
//
// The n-gram itself is not stored. Two n-grams with the same 64-bit hash are taken for the same one, which leads to a
// wrong guess very rarely. Not thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/token.h"

namespace outrider {

// The hash of n tokens, which are added one by one. N-grams of different lengths have different hashes.
class NgramHash {
 public:
  explicit NgramHash(size_t n) : value_(n) {}
  void Add(Token token) {
    value_ = (value_ ^ static_cast<uint32_t>(token)) * 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
    value_ ^= value_ >> 32;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_;
};

inline uint64_t HashNgram(std::span<const Token> ngram) {
  NgramHash hash(ngram.size());
  for (const Token token : ngram) hash.Add(token);
  return hash.value();
}

// An open-addressing hash table with a bounded time per call: a key that finds no free slot within kMaxProbes is not
// stored. The table is at most half full, so this does not happen by chance, but only if somebody chooses tokens whose
// hashes collide.
template <typename Value>
class HashIndex {
 public:
  struct Slot {
    uint64_t hash = 0;  // 0 = empty
    Value value{};
  };

  // Makes room for `n` keys.
  void Reserve(size_t n) {
    const size_t slots = std::bit_ceil(2 * n);
    if (slots > slots_.size()) Resize(slots);
  }

  const Value* Find(uint64_t hash) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[Probe(hash)];
    return slot.hash == Key(hash) ? &slot.value : nullptr;
  }

  // Null if there is no slot for it. Valid until the next call.
  Value* FindOrAdd(uint64_t hash) {
    if (2 * (size_ + 1) > slots_.size()) Resize(slots_.empty() ? kMinSlots : 2 * slots_.size());
    Slot& slot = slots_[Probe(hash)];
    if (slot.hash == 0) {
      slot.hash = Key(hash);
      ++size_;
    }
    return slot.hash == Key(hash) ? &slot.value : nullptr;
  }

  size_t size() const { return size_; }
  const std::vector<Slot>& slots() const { return slots_; }  // including empty ones

 private:
  static constexpr size_t kMinSlots = 64;
  static constexpr size_t kMaxProbes = 64;

  static uint64_t Key(uint64_t hash) { return hash == 0 ? 1 : hash; }

  // The slot that holds `hash`; else the empty slot where it belongs; else a slot with another hash. The distance grows
  // with each probe, so that full slots do not form clusters.
  size_t Probe(uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t at = Key(hash) & mask;
    for (size_t distance = 1; distance < kMaxProbes; ++distance) {
      if (slots_[at].hash == 0 || slots_[at].hash == Key(hash)) break;
      at = (at + distance) & mask;
    }
    return at;
  }

  void Resize(size_t n_slots) {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(n_slots));
    size_ = 0;
    for (Slot& slot : old) {
      if (slot.hash == 0) continue;
      Slot& target = slots_[Probe(slot.hash)];
      if (target.hash != 0) continue;
      target = std::move(slot);
      ++size_;
    }
  }

  std::vector<Slot> slots_;  // a power of two of them
  size_t size_ = 0;
};

}  // namespace outrider
