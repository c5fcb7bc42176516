// HeadDrafter: a head (engine/hidden_head.h) guesses from the target's hidden states which tokens the target will
// generate. Two kinds of heads draft in the same way: `eagle3`, from a file of its own, and `mtp`, from the model's
// file.
//
// A state is kept when its row became final, and read by the head before the next draft: after a long prompt in slices,
// as a HistoryReader. The states of drafted tokens are the head's own guesses, so their rows are always removed again.
// States of tokens that were in the target's memory before the request (a prefix of an earlier request, a restored
// slot) never come. The head keeps its own rows of a prefix that is the same; where it has none, it drafts without
// them. Without the state of the last row it is silent.
//
// It draws with the target's own noise (draft_sampler.h). If the head fails there are no drafts, but no request fails.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "drafters/draft_sampler.h"
#include "drafters/drafter.h"
#include "drafters/registry.h"
#include "engine/hidden_head.h"

namespace outrider {

class HeadDrafter : public Drafter, public HistoryReader {
 public:
  // `window`: of a prompt, the states of at most so many of the last tokens are kept until the head has read them.
  // `tokenizer`: the target's.
  HeadDrafter(std::string name, const DraftHead& head, const Tokenizer& tokenizer, int n_sequences, int window);

  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) override;
  void Propose(std::span<Proposal*> proposals) override;
  void Commit(SeqId seq, const CommittedStep& step) override;
  void End(SeqId, std::span<const Token>, bool) override {}
  HistoryReader* reader() override { return this; }
  int Lag(SeqId seq, std::span<const Token> history) const override;
  void Read(SeqId seq, std::span<const Token> history, int tokens) override;

  static constexpr int kMaxGiven = 4;  // tokens of another drafter that a draft may begin with: each costs a round

 private:
  // The state of a row of the target.
  struct State {
    Pos pos;
    std::vector<float> values;
  };

  struct Memory {
    std::vector<Token> history;  // that the rest belongs to
    std::vector<Pos> read;       // the head's rows with states of the target: the positions of these states, ascending
    std::deque<State> unread;    // later states
    DraftSampler sampler;
  };

  // One proposal while it is being answered.
  struct Answer {
    Proposal* proposal;
    double survival = 1;
    size_t fed = 0;  // tokens of the draft that are in the head's memory
    int row = 0;     // the row of the last Decode whose outputs give the next token
  };

  Memory& MemoryOf(SeqId seq) { return memories_[static_cast<size_t>(seq)]; }
  static size_t Readable(const Memory& memory, size_t history_size);
  bool MayDraft(const Proposal& proposal);
  void AddState(SeqId seq, const State& state, std::span<const Token> history);
  void AddRow(const HeadRow& row) { rows_.push_back(row); }
  void MarkRead(SeqId seq, size_t count);
  bool Decode(bool wants_outputs);
  void ReadStates(std::span<Proposal*> proposals);
  bool FeedOrDraw(Answer& answer);
  void Forget(SeqId seq);

  const DraftHead& head_;
  const Tokenizer& tokenizer_;
  const size_t window_;
  std::vector<Memory> memories_;  // by sequence
  std::vector<HeadRow> rows_;     // of the next Decode
  std::vector<Pos> places_;       // by sequence: the place of its next row
  std::vector<Answer> answers_;
  bool failing_ = false;  // the last Decode failed; only a change is logged
};

DrafterKind Eagle3Kind();
DrafterKind MtpKind();

}  // namespace outrider
