#include "drafters/suffix_memory.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr int32_t kKnown = 64;   // tokens: a passage of this length that the young tree contains is not stored again
constexpr size_t kContext = 32;  // tokens at its end that are stored again, as the context of the new text after it
constexpr Token kBorder[] = {kNoToken};

}  // namespace

SuffixMemory::SuffixMemory(size_t max_bytes)
    : max_waiting_bytes_(max_bytes / 8),
      max_tree_bytes_(max_bytes - max_waiting_bytes_),
      max_owners_(std::clamp(max_bytes / kMinShare, size_t{1}, kMaxOwners)) {}

size_t SuffixMemory::Owner::bytes() const {
  return (young ? young->tree.bytes() : 0) + (old ? old->tree.bytes() : 0);
}

size_t SuffixMemory::TreeBytes() const {
  size_t sum = 0;
  for (const auto& [name, owner] : owners_) sum += owner.bytes();
  return sum;
}

size_t SuffixMemory::WaitingBytes() const {
  size_t sum = 0;
  for (const Waiting& waiting : waiting_) sum += waiting.text.size() * sizeof(Token);
  return sum;
}

size_t SuffixMemory::bytes() const {
  return TreeBytes() + WaitingBytes();
}

SuffixMemory::Generations SuffixMemory::Find(const std::string& owner) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return {nullptr, nullptr};
  found->second.last_used = ++uses_;
  return {found->second.young.get(), found->second.old.get()};
}

void SuffixMemory::Remember(const std::string& owner, std::span<const Token> text) {
  const std::span<const Token> kept = text.last(std::min(text.size(), max_waiting_bytes_ / sizeof(Token)));
  waiting_.push_back({owner, {kept.begin(), kept.end()}});
  while (WaitingBytes() > max_waiting_bytes_) waiting_.pop_front();
}

void SuffixMemory::Absorb(size_t tokens) {
  while (tokens > 0 && !waiting_.empty()) {
    Waiting& text = waiting_.front();
    Owner& owner = Open(text.owner);
    for (; tokens > 0 && text.read < text.text.size(); --tokens) AbsorbToken(text, owner);
    if (text.read < text.text.size()) return;
    Store(owner, kBorder);
    waiting_.pop_front();
  }
}

void SuffixMemory::AbsorbToken(Waiting& text, Owner& owner) {
  const std::span<const Token> all(text.text);
  const size_t at = text.read++;
  if (text.known_to == owner.young->id) {
    owner.young->tree.Advance(text.place, all[at]);
    if (owner.young->tree.Length(text.place) >= kKnown) return;
    const size_t from = std::max(text.stored, at - std::min(at, kContext));
    Store(owner, all.subspan(from, at - from));
  }
  text.known_to = 0;
  Store(owner, all.subspan(at, 1));
  text.stored = at + 1;
  if (owner.young->tree.Last().length < kKnown) return;
  text.known_to = owner.young->id;
  text.place = owner.young->tree.End();
  Store(owner, kBorder);
}

SuffixMemory::Owner& SuffixMemory::Open(const std::string& name) {
  if (!owners_.contains(name) && owners_.size() == max_owners_) ForgetLeastRecentlyUsed();
  Owner& owner = owners_[name];
  owner.last_used = ++uses_;
  if (!owner.young) Renew(owner);
  return owner;
}

void SuffixMemory::ForgetLeastRecentlyUsed() {
  owners_.erase(std::min_element(owners_.begin(), owners_.end(),
                                 [](const auto& a, const auto& b) { return a.second.last_used < b.second.last_used; }));
}

void SuffixMemory::Store(Owner& owner, std::span<const Token> tokens) {
  if (owner.young->tree.BytesWith(tokens.size()) > max_tree_bytes_ / owners_.size() / 2) Renew(owner);
  MakeRoom(owner.young->tree.BytesWith(tokens.size()) - owner.young->tree.bytes());
  for (const Token token : tokens) owner.young->tree.Append(token);
}

void SuffixMemory::Renew(Owner& owner) {
  owner.old = std::move(owner.young);
  owner.young = std::make_unique<Generation>(++generations_);
}

// Frees memory until there is room for `bytes_needed`, by dropping the older tree of the owner that holds the most. The
// tree that is being written is never dropped: with the new tokens it has at most half of an owner's share, so whenever
// memory is short another owner holds more.
void SuffixMemory::MakeRoom(size_t bytes_needed) {
  if (bytes_needed == 0) return;
  while (TreeBytes() + bytes_needed > max_tree_bytes_) {
    Owner& largest = std::max_element(owners_.begin(), owners_.end(), [](const auto& a, const auto& b) {
                       return a.second.bytes() < b.second.bytes();
                     })->second;
    if (!largest.old) Renew(largest);
    largest.old.reset();
  }
}

}  // namespace outrider
