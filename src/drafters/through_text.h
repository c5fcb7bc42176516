// ThroughText: a model of another vocabulary drafts for the target. Histories are retold in its tokens, and its draft
// is told back in the target's, as far as both spell the same text; so any small model can draft for any large one.
//
// Noise is drawn per token and place, and neither means the same on the other side: the model drafts what it finds most
// likely, at any temperature.
#pragma once

#include <memory>
#include <vector>

#include "drafters/model_drafter.h"
#include "drafters/retelling.h"

namespace outrider {

class ThroughText : public Drafter, public HistoryReader {
 public:
  // `model` works in the vocabulary of `draft`.
  ThroughText(std::unique_ptr<ModelDrafter> model, const Tokenizer& target, const Tokenizer& draft, int n_sequences);

  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) override;
  void Commit(SeqId, const CommittedStep&) override {}
  void Propose(std::span<Proposal*> proposals) override;
  void End(SeqId, std::span<const Token>, bool) override {}
  HistoryReader* reader() override { return this; }
  int Lag(SeqId seq, std::span<const Token> history) const override;
  void Read(SeqId seq, std::span<const Token> history, int tokens) override;

 private:
  bool Retell(const Proposal& proposal, Proposal& retold);
  void TellBack(const Draft& theirs, Proposal& proposal) const;

  const std::unique_ptr<ModelDrafter> model_;
  const Tokenizer& target_;
  const Tokenizer& draft_;
  std::vector<Retelling> retellings_;  // per sequence
  std::vector<Proposal> retold_;       // of one Propose
};

}  // namespace outrider
