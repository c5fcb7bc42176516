// RetokenizingDrafter: lets a draft model with another vocabulary draft for the target, so that any small model can
// draft for any large one. Histories are translated into the draft model's tokens, and its draft is translated back
// into the target's tokens, both by way of their text.
//
// The draft model cannot draw with the target's noise, because that depends on token ids and positions, which differ
// between the two vocabularies. It therefore drafts its most likely tokens at every temperature.
#pragma once

#include <memory>
#include <vector>

#include "drafters/model_drafter.h"
#include "drafters/retokenizer.h"

namespace outrider {

class RetokenizingDrafter : public Drafter, public HistoryReader {
 public:
  // `model` works in the vocabulary of `draft`.
  RetokenizingDrafter(std::unique_ptr<ModelDrafter> model, const Tokenizer& target, const Tokenizer& draft,
                      int n_sequences);

  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) override;
  void Commit(SeqId, const CommittedStep&) override {}
  void Propose(std::span<Proposal*> proposals) override;
  void End(SeqId, std::span<const Token>, bool) override {}
  HistoryReader* reader() override { return this; }
  int Lag(SeqId seq, std::span<const Token> history) const override;
  void Read(SeqId seq, std::span<const Token> history, int tokens) override;

 private:
  bool TranslateToDraft(const Proposal& proposal, Proposal& translated);
  void TranslateToTarget(const Draft& theirs, Proposal& proposal) const;

  const std::unique_ptr<ModelDrafter> model_;
  const Tokenizer& target_;
  const Tokenizer& draft_;
  std::vector<Retokenizer> retokenizers_;  // per sequence
  std::vector<Proposal> translated_;       // of one Propose
};

}  // namespace outrider
