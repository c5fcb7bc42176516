// SuffixDrafter: drafts what followed where the end of the sequence occurred before: in the request itself (prompt and
// answer so far), and in past requests of the same owner.
//
// The places with the longest matches vote on each token; those that voted for another token take no further part. The
// confidence depends on the lengths of the matches and on how many of them agree (docs/drafters/suffix.md). There is no
// model and no training; a draft takes a few microseconds.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "drafters/drafter.h"
#include "drafters/registry.h"
#include "drafters/suffix_memory.h"
#include "drafters/suffix_tree.h"

namespace outrider {

struct SuffixOptions {
  bool remember = true;                    // use past requests too, not only the current one
  size_t memory_bytes = size_t{64} << 20;  // for past requests of all owners
};

class SuffixDrafter final : public Drafter {
 public:
  SuffixDrafter(int n_sequences, const SuffixOptions& options);

  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) override;
  void Commit(SeqId seq, const CommittedStep& step) override;
  void Propose(std::span<Proposal*> proposals) override;
  void End(SeqId seq, std::span<const Token> history, bool complete) override;

  size_t remembered_bytes() const { return memory_ ? memory_->bytes() : 0; }  // of past requests

 private:
  // The place of a sequence's end in a tree of its owner's past requests.
  struct Follower {
    uint64_t generation = 0;
    size_t tree_size = 0;  // when the cursor was set
    size_t read = 0;       // tokens of the history that the cursor has followed
    SuffixTree::Cursor cursor;
  };

  struct Sequence {
    std::string owner;
    SuffixTree own;
    std::array<Follower, 2> followers;
  };

  SuffixMemory::Generations Read(Sequence& sequence, std::span<const Token> history);
  static void Follow(Follower& follower, const SuffixMemory::Generation& generation, std::span<const Token> history);
  static void Continue(const Sequence& sequence, const SuffixMemory::Generations& past, Proposal& proposal);

  std::vector<Sequence> sequences_;
  std::optional<SuffixMemory> memory_;
};

DrafterKind SuffixKind();

}  // namespace outrider
