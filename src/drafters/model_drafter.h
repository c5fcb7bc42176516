// ModelDrafter: a small model of the target's vocabulary guesses what the large one will say. (One of another
// vocabulary needs drafters/through_text.h in between.)
//
// It draws with the target's own noise (same seed, same positions), so that at any temperature it draws the target's
// token as often as two models can agree; its confidence is the probability it drew with. Its memory follows the
// target's: a sequence that goes on from an earlier request's prefix is not read again, and what was drafted wrongly is
// taken back. All sequences of a step draft in one batch, token by token.
//
// A failing draft engine costs drafts, never a request: the sequence's memory is given up and read again.
#pragma once

#include <memory>
#include <vector>

#include "drafters/drafter.h"
#include "drafters/registry.h"
#include "engine/batch.h"
#include "sampling/sampler.h"

namespace outrider {

class ModelDrafter : public Drafter, public HistoryReader {
 public:
  // `window`: tokens of the history the model looks back on at most; 0 = as many as its context holds. `vocabulary`:
  // tokens up to this id mean the same to both models; no other is read or drafted.
  ModelDrafter(const DraftModel& model, int n_sequences, int window, Token vocabulary);

  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) override;
  void Commit(SeqId, const CommittedStep&) override {}
  void Propose(std::span<Proposal*> proposals) override;
  void End(SeqId, std::span<const Token>, bool) override {}
  HistoryReader* reader() override { return this; }
  int Lag(SeqId seq, std::span<const Token> history) const override;
  void Read(SeqId seq, std::span<const Token> history, int tokens) override;

  // Tokens of the history after the first `kept` may be others than they were.
  void Revise(SeqId seq, size_t kept);

  // Nothing of what `seq` has read is left.
  void Forget(SeqId seq);

  static constexpr int kReadAlong = 16;  // tokens a proposal may read first without being behind

 private:
  // What the engine's memory of one sequence holds: the history from `start` on, then perhaps drafted tokens.
  struct Memory {
    Pos start = 0;
    std::vector<Token> tokens;
    size_t agreed = 0;  // of them known to be history
    std::unique_ptr<Sampler> sampler;
    bool distributions = false;
  };

  // One proposal while it is being answered.
  struct Answer {
    Proposal* proposal;
    double survival;
    int row;  // of the last batch, whose logits tell the next token
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
  bool failing_ = false;  // logged once per change
};

// How far two vocabularies agree.
struct VocabularyMatch {
  Token common = 0;        // tokens 0 … common - 1 stand for the same text in both
  std::string difference;  // "" if one vocabulary is the beginning of the other; else the first token that differs
};

VocabularyMatch CompareVocabularies(const Tokenizer& target, const Tokenizer& draft);

DrafterKind ModelKind();

}  // namespace outrider
