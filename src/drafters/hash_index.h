// What drafters that look things up are built from: a hash of an n-gram, and a table from such hashes to values.
//
// The n-gram itself is not kept: two n-grams with the same 64 bits are taken for one, which costs a wrong guess once in
// a very long time. Pure; one thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/token.h"

namespace outrider {

// The hash of n tokens, fed one by one. The same tokens as a longer or shorter n-gram hash differently.
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

// An open-addressed hash table that never takes long: a key that finds no place within kMaxProbes is not kept. With the
// table at most half full that does not happen by chance, only to somebody who makes his tokens collide.
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

  // Null if there is no place for it. Valid until the next call.
  Value* FindOrAdd(uint64_t hash) {
    if (2 * (size_ + 1) > slots_.size()) Resize(slots_.empty() ? kLeastSlots : 2 * slots_.size());
    Slot& slot = slots_[Probe(hash)];
    if (slot.hash == 0) {
      slot.hash = Key(hash);
      ++size_;
    }
    return slot.hash == Key(hash) ? &slot.value : nullptr;
  }

  size_t size() const { return size_; }
  const std::vector<Slot>& slots() const { return slots_; }  // empty ones among them

 private:
  static constexpr size_t kLeastSlots = 64;
  static constexpr size_t kMaxProbes = 64;

  static uint64_t Key(uint64_t hash) { return hash == 0 ? 1 : hash; }

  // The slot of `hash`, or the empty one where it belongs, or another's if there is neither. The distance grows with
  // each probe, so that full slots do not clot.
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
