// StepBatch: the rows of one step, planned and then filled in.
//
// Every generating sequence gets its next row and, before it, rows for tokens that are decoded again after a rollback,
// except while DrawBudget lets it rest, or while a sequence suspected of a failure is decoded alone. Prompts share the
// other rows of the step, the oldest first. While other sequences generate, all prompts together get one slice
// (`prompt_slice`), so that no sequence waits longer than a slice takes because of prompts. Otherwise they get as many
// rows as the backend computes at once.
//
// All rows of a step are computed with the same adapters. If the sequences that could take part have different ones,
// the sets take turns: the set that has waited longest gets the next steps, until kTurn is over.
//
// A batch has rows of tokens or rows of pictures. If some of its sequences come to a picture while others need tokens,
// steps of either kind take turns, and a sequence gets rows up to the next change only.
#pragma once

#include <span>
#include <vector>

#include "base/clock.h"
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
  int first_row = -1;   // index of the first of these rows in the batch
  int logits_row = -1;  // row of the last committed token, before those of the draft; -1 if the prompt is not complete
  std::span<const DraftToken> draft = {};
  int accepted = 0;      // accepted draft tokens; known after verification
  Duration draw_time{};  // for the tokens of all its rows; known after verification
};

class StepBatch {
 public:
  // `prompt_slice`: prompt tokens decoded per step while other sequences are generating.
  StepBatch(const Engine& engine, int prompt_slice) : engine_(engine), prompt_slice_(prompt_slice) {}

  // Decides which sequences take part, and with how many rows. `sequences` are in the order of their ids.
  void ShareRows(std::vector<Sequence>& sequences, TimePoint now);

  bool empty() const { return entries_.empty(); }
  uint64_t adapter_switches() const { return adapter_switches_; }  // steps with other adapters than the one before
  std::span<StepEntry> entries() { return entries_; }
  std::span<const StepEntry> entries() const { return entries_; }

  // Whether a draft may be verified along with the entry's next row.
  bool MayDraft(const StepEntry& entry) const;

  // Rows that are left for drafts.
  int room() const;

  // Adds the rows of `entry`, its draft included. Must be called in the order of the entries.
  void AddRows(StepEntry& entry, bool wants_hidden);
  const Batch& batch() const { return batch_; }

  // The rows of all entries, as Engine::LayOut takes them.
  std::span<const SequenceRows> ListRows();

 private:
  AdapterSet ChooseAdapters(std::vector<Sequence>& sequences, bool alone, TimePoint now);
  int Missing(const Sequence& sequence) const;
  bool ContinuesAnswer(const StepEntry& entry) const;
  void ShareAmongPrompts(int rows);
  void ChooseKind();
  int RowsOfKind(const Sequence& sequence) const;
  void LeaveTail(StepEntry& entry) const;

  const Engine& engine_;
  const int prompt_slice_;
  bool media_ = false;       // the step has rows of pictures
  bool media_turn_ = false;  // likewise of the last step for which there was a choice
  uint64_t steps_ = 1;       // those that were planned, and one
  uint64_t adapter_switches_ = 0;
  AdapterSet last_adapters_;
  TimePoint turn_began_{};
  std::vector<StepEntry> entries_;
  std::vector<StepEntry*> prompts_;  // scratch
  std::vector<SequenceRows> rows_;   // scratch
  Batch batch_;
};

}  // namespace outrider
