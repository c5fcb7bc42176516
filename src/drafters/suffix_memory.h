// SuffixMemory: the texts of past requests, separate for each owner, within a limit on memory.
//
// Each owner has a young and an old suffix tree. Texts are added to the young tree. When it is full, the old tree is
// dropped, the young one becomes the old one, and a new young one begins. So a text that comes again and again is
// copied into each new tree, and a text that does not is forgotten after two trees. Owners have equal shares of the
// memory: an owner that would exceed its share drops its own old tree, and when a new owner makes the shares smaller,
// the owner that holds the most drops its tree first. If there are too many owners, the least recently used one is
// forgotten.
//
// Only new text is stored: long passages that the young tree already contains (a system prompt, earlier turns of a
// conversation, a file that an agent sends again) are left out, except for a little context.
//
// Remember only queues a text. Absorb adds queued texts to the trees, a few tokens at a time, so that the end of a long
// request does not delay other requests. If the queue gets too long, its oldest texts are dropped.
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
  static constexpr size_t kMinShare = size_t{1} << 20;  // bytes
  static constexpr size_t kMaxOwners = 64;

  // A tree that only grows. Any call of Absorb may delete it; a new tree has another id.
  struct Generation {
    uint64_t id;
    SuffixTree tree;
  };
  using Generations = std::array<const Generation*, 2>;  // the young one, the old one; null if there is none

  // `max_bytes` must be at least kMinShare.
  explicit SuffixMemory(size_t max_bytes);

  void Remember(const std::string& owner, std::span<const Token> text);
  void Absorb(size_t tokens);

  // Valid until the next call of Absorb.
  Generations Find(const std::string& owner);

  // Bytes of all trees and waiting texts; between calls never more than `max_bytes`.
  size_t bytes() const;

 private:
  struct Owner {
    std::unique_ptr<Generation> young, old;
    uint64_t last_used = 0;

    size_t bytes() const;
  };

  // A text that is waiting to be added to its owner's young tree.
  struct Waiting {
    std::string owner;
    std::vector<Token> text;
    size_t read = 0;
    size_t stored = 0;      // everything before this position was stored, or known already
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
