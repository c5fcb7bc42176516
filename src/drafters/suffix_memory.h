// SuffixMemory: what past requests said, kept apart by owner, within a bound on memory.
//
// Each owner has a young and an old suffix tree. Texts go into the young one; when it is full it becomes the old one,
// and the old one goes. A text that keeps coming up is thus copied into each new tree, and one that does not is
// forgotten after two. Owners share the memory evenly: one that would exceed its part gives up its own old tree, and
// when a new owner makes the parts smaller, the one that holds most gives first. Beyond a number of owners the least
// recently used is forgotten.
//
// Only what is new is stored: long passages that the young tree already knows (a system prompt, earlier turns of a
// conversation, a file that an agent sends again) are left out but for a little context.
//
// Remember only takes note of a text. It enters the trees in Absorb, bit by bit, so that the end of a long request does
// not hold up the others. What cannot be absorbed in time is dropped.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drafters/suffix_tree.h"

namespace outrider {

class SuffixMemory {
 public:
  static constexpr size_t kLeastShare = size_t{1} << 20;  // bytes an owner has at least
  static constexpr size_t kMostOwners = 64;

  // A tree that only grows. It can vanish in any call of Absorb; another then has another id.
  struct Generation {
    uint64_t id;
    SuffixTree tree;
  };
  using Generations = std::array<const Generation*, 2>;  // the young one, the old one; null if there is none

  // At least kLeastShare.
  explicit SuffixMemory(size_t max_bytes);

  void Remember(const std::string& owner, std::span<const Token> text);
  void Absorb(size_t tokens);

  // Valid until the next call of Absorb.
  Generations Find(const std::string& owner);

  // Of all trees and waiting texts: between calls, at most what the memory was given.
  size_t bytes() const;

 private:
  struct Owner {
    std::unique_ptr<Generation> young, old;
    uint64_t last_used = 0;

    size_t bytes() const;
  };

  // A text on its way into its owner's young tree.
  struct Waiting {
    std::string owner;
    std::vector<Token> text;
    size_t read = 0;
    size_t stored = 0;      // up to here, as far as it was worth it
    uint64_t known_to = 0;  // the tree in which `place` is the text read so far; 0 while the text is being stored
    SuffixTree::Cursor place = {};
  };

  void AbsorbToken(Waiting& text, Owner& owner);
  Owner& Open(const std::string& name);
  void ForgetLeastRecentlyUsed();
  void Store(Owner& owner, std::span<const Token> tokens);
  void Renew(Owner& owner);
  void MakeRoom(size_t bytes);
  size_t TreeBytes() const;
  size_t WaitingBytes() const;

  const size_t max_waiting_bytes_;
  const size_t max_tree_bytes_;
  const size_t max_owners_;
  std::map<std::string, Owner> owners_;
  std::deque<Waiting> waiting_;
  uint64_t uses_ = 0;
  uint64_t generations_ = 0;
};

}  // namespace outrider
