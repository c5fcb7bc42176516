// StepBatch: the rows of one step, planned and then filled in.
//
// Every generating sequence gets its next row, after those of tokens that a rollback took along. Prompts share what is
// left, oldest first: one slice while others generate, so that nobody waits longer than that for a token; as much as
// the backend computes at once otherwise.
#pragma once

#include <span>
#include <vector>

#include "base/step_layout.h"
#include "engine/batch.h"
#include "engine/engine.h"
#include "scheduler/sequence.h"
#include "spec/draft.h"

namespace outrider {

// A sequence's part in a step.
struct StepEntry {
  Sequence* sequence;
  int rows;             // how many of its committed tokens are decoded
  int first_row = -1;   // of them in the batch
  int logits_row = -1;  // the row that tells the next token, those of the draft follow; -1 while the prompt goes on
  std::span<const DraftToken> draft = {};
  int accepted = 0;  // of the draft; known after verification
};

class StepBatch {
 public:
  // `prompt_slice`: prompt tokens decoded per step while other sequences are generating.
  StepBatch(const Engine& engine, int prompt_slice) : engine_(engine), prompt_slice_(prompt_slice) {}

  // Decides who takes part, with how many rows. Sequences in the order of their ids.
  void Plan(std::vector<Sequence>& sequences);

  bool empty() const { return entries_.empty(); }
  std::span<StepEntry> entries() { return entries_; }
  std::span<const StepEntry> entries() const { return entries_; }

  // Whether a draft may be verified along with the entry's next row.
  bool MayDraft(const StepEntry& entry) const;

  // Rows that drafts may take.
  int room() const;

  // Adds the rows of `entry`, its draft included; in the order of the entries.
  void AddRows(StepEntry& entry, bool wants_hidden);
  const Batch& batch() const { return batch_; }

  // The rows of all entries, as the engine is asked for their layout.
  std::span<const SequenceRows> ListRows();

 private:
  int Missing(const Sequence& sequence) const;
  bool GoesOn(const StepEntry& entry) const;
  void ShareRows(int rows);
  void LeaveTail(StepEntry& entry) const;

  const Engine& engine_;
  const int prompt_slice_;
  std::vector<StepEntry> entries_;
  std::vector<StepEntry*> prompts_;  // scratch
  std::vector<SequenceRows> rows_;   // scratch
  Batch batch_;
};

}  // namespace outrider
