// HiddenHead: a small network that predicts tokens of a target from the target's own hidden states, seen as a function
// from rows to logits (an EAGLE-3 head, or a head for multi-token prediction that a model brings along).
//
// A row of a head is a token and the hidden state of the target's row of the token before. Its logits are those of the
// token after. Its state takes the place of the target's: with the drafted token it makes the next row. So a draft is
// made row by row, and replaced by rows with the target's states when these are known.
//
// A head remembers its rows like an engine: those of a sequence have the places 0 .. Length(seq) - 1. Only the order of
// the rows counts. If some states are not known, the rows before and after the gap follow each other.
//
// Not thread-safe: the thread that drives the target drives its head.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "base/token.h"

namespace outrider {

struct HeadInfo {
  std::vector<int> layers;  // whose hidden states it reads, for Engine::ProvideHidden
  int n_vocab = 0;          // tokens that it knows; it may draft those
  Pos sequence_length = 0;  // rows that each sequence has room for
  int max_batch = 0;        // rows that one Decode takes
  int max_outputs = 0;      // rows of one Decode that may give outputs
};

struct HeadRow {
  Token token;
  Pos place;
  SeqId seq;
  std::span<const float> state;  // of the token before: what Engine::Hidden or HiddenHead::State gave
  bool from_target = true;       // it is from Engine::Hidden
};

class HiddenHead {
 public:
  virtual ~HiddenHead() = default;

  virtual const HeadInfo& info() const = 0;

  // Appends rows to the memory. Rows of one sequence are consecutive and begin at Length(seq). `wants_outputs`: all
  // rows give logits and a state; else none does. After an error the memory of these sequences is unspecified until
  // TruncateTo(seq, 0).
  virtual Status Decode(std::span<const HeadRow> rows, bool wants_outputs) = 0;

  // Outputs of row `row` of the last Decode, valid until the next one. Rows of the next Decode may have these states.
  virtual std::span<const float> Logits(int row) = 0;
  virtual std::span<const float> State(int row) = 0;

  // Rows in the memory of `seq`.
  virtual Pos Length(SeqId seq) const = 0;

  // Removes rows until at most `length` are left.
  virtual void TruncateTo(SeqId seq, Pos length) = 0;
};

}  // namespace outrider
