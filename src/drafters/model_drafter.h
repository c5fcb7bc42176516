// ModelDrafter: a small model with the target's vocabulary guesses which tokens the target will generate. (A model with
// another vocabulary is used through drafters/retokenizing_drafter.h.)
//
// It draws with the target's own noise (draft_sampler.h). Its memory follows the target's: a prefix that a sequence
// shares with an earlier request is not read again, and rejected draft tokens are rolled back. All sequences of a step
// draft in one batch, token by token.
//
// If the draft engine fails there are no drafts, but no request fails: the memory of the sequence is cleared and read
// again.
#pragma once

#include <vector>

#include "drafters/draft_sampler.h"
#include "drafters/drafter.h"
#include "drafters/registry.h"
#include "engine/batch.h"

namespace outrider {

class ModelDrafter : public Drafter, public HistoryReader {
 public:
  // `window`: max number of tokens of the history that the model reads; 0 = as many as its context holds. `vocabulary`:
  // token ids below this mean the same to both models; others are neither read nor drafted.
  ModelDrafter(const DraftModel& model, int n_sequences, int window, Token vocabulary);

  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) override;
  void Commit(SeqId, const CommittedStep&) override {}
  void Propose(std::span<Proposal*> proposals) override;
  void End(SeqId, std::span<const Token>, bool) override {}
  HistoryReader* reader() override { return this; }
  int Lag(SeqId seq, std::span<const Token> history) const override;
  void Read(SeqId seq, std::span<const Token> history, int tokens) override;

  // Tokens of the history after the first `kept` may have changed since the last call.
  void Revise(SeqId seq, size_t kept);

  // Clears the memory of `seq`.
  void Forget(SeqId seq);

 private:
  // What the engine's memory of one sequence holds: the history from `start` on, then perhaps drafted tokens.
  struct Memory {
    Pos start = 0;
    std::vector<Token> tokens;
    size_t agreed = 0;  // how many of them are known to be history
    DraftSampler sampler;
  };

  // One proposal while it is being answered.
  struct Answer {
    Proposal* proposal;
    double survival;
    int row;  // the row of the last batch whose logits give the next token
  };

  Memory& MemoryOf(SeqId seq) { return memories_[static_cast<size_t>(seq)]; }
  static size_t AgreedTokens(const Memory& memory, std::span<const Token> seen);
  void Agree(SeqId seq, std::span<const Token> history);
  void Slide(SeqId seq, size_t length, size_t more);
  bool Add(SeqId seq, Token token, bool wants_logits);
  bool Decode();
  void ReadHistories(std::span<Proposal*> proposals);
  bool DrawNext(Answer& answer);

  const DraftModel& model_;
  const int window_;
  const Token vocabulary_;
  std::vector<Memory> memories_;
  Batch batch_;
  std::vector<Answer> answers_;
  bool failing_ = false;  // the last Decode failed; only a change is logged
};

// How far two vocabularies agree.
struct VocabularyMatch {
  Token common = 0;        // tokens 0 … common - 1 stand for the same text in both
  std::string difference;  // "" if one vocabulary is the beginning of the other; else the first token that differs
};

VocabularyMatch CompareVocabularies(const Tokenizer& target, const Tokenizer& draft);

DrafterKind ModelKind();

}  // namespace outrider
