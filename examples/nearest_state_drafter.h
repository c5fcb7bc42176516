// The worked example of docs/ADDING_A_DRAFTER.md: a drafter that reads the target's hidden states, in two files.
//
// It drafts what followed the row whose hidden state was most like that of the last row: a lookup by meaning instead of
// by words. It compares all rows of the text, which takes longer than a lookup may, so it is a drafter that computes.
// It drafts too little to be useful, but it is complete as an example.
#pragma once

#include <memory>
#include <vector>

#include "drafters/drafter.h"
#include "drafters/registry.h"

namespace outrider {

class NearestStateDrafter : public Drafter {
 public:
  explicit NearestStateDrafter(int n_sequences);

  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) override;
  void Propose(std::span<Proposal*> proposals) override;
  void Commit(SeqId seq, const CommittedStep& step) override;
  void End(SeqId seq, std::span<const Token> history, bool complete) override;

 private:
  struct Row {
    Pos pos = -1;
    std::vector<float> state;
  };

  std::vector<std::vector<Row>> rows_;  // by sequence: the rows whose states are known, in ascending order of positions
};

DrafterKind NearestStateKind();

}  // namespace outrider
