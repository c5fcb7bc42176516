// ReplicatedEngine: several engines of one model that verify consecutive parts of a draft at the same time (speculation
// parallelism, as in DSI).
//
// While one replica verifies a draft, the drafter continues to draft. Another replica begins at once to compute the
// tokens that follow the draft, as if the draft were right. If it is accepted, the rows of the next step are already
// partly computed. If not, they are discarded; they were computed on hardware that had nothing else to do.
//
//   replica 1  |-- a b c d --|        |-- i j k l --|
//   replica 2         |-- e f g h --|        |-- m n …
//   steps      |      1      |   2    |   3  |
//
// To its caller it is one engine, with one text for each sequence. Every replica has a memory of its own. When a
// replica gets rows, its memory is made equal to the text: tokens that differ are dropped, and missing tokens are
// decoded in front of the rows. So each replica decodes each token, and no memory is copied between them. A replica
// that misses many tokens reads these first, and does not work ahead meanwhile.
//
// A replica that fails while it works ahead is not used any more.
//
// Only steps of one sequence are begun ahead: with more sequences, their rows fill the hardware.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/lookahead.h"

namespace outrider {

class ReplicatedEngine : public Engine, public Lookahead {
 public:
  // `replicas`: at least one; engines with the same settings, which compute the same numbers and can drop single
  // tokens. They must outlive this object and must not be used by anybody else.
  explicit ReplicatedEngine(const std::vector<Engine*>& replicas, const Clock& clock = Clock::Real());
  ~ReplicatedEngine() override;

  const EngineInfo& info() const override { return info_; }
  Status Decode(const Batch& batch) override;
  std::span<const float> Logits(int row) override;
  void LayOut(std::span<const SequenceRows> step, StepLayout* layout) const override;
  Pos Length(SeqId seq) const override { return static_cast<Pos>(texts_[static_cast<size_t>(seq)].size()); }
  Pos TruncateTo(SeqId seq, Pos length) override;

  void SetLookaheadSource(LookaheadSource* source) override { source_ = source; }
  std::span<const Token> BegunAhead(SeqId seq, std::span<const Token> text) const override;
  bool LastDecodeWasBegunAhead() const override { return was_begun_ahead_; }

  // Unsupported, because rows that are begun ahead do not ask for hidden states.
  Status ProvideHidden(std::span<const int> layers) override;
  std::span<const float> Hidden(int row) override;

  // Unsupported, because the other replicas would have to read the text, which the saved bytes do not contain.
  Result<std::vector<uint8_t>> SaveSequence(SeqId seq) override;
  Status RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) override;

 private:
  class Replica;

  void Assume(const Batch& batch);
  Replica* FindBegun(const Batch& batch);
  size_t Missing(const Replica& replica, const Batch& batch) const;
  Replica& ChooseIdle(const Batch& batch);
  void LookAhead(const Batch& batch, TimePoint begun_at);

  EngineInfo info_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::vector<Token>> texts_;  // by sequence
  std::vector<AdapterSet> adapters_;       // with which they were computed last
  const Clock& clock_;
  LookaheadSource* source_ = nullptr;
  Replica* serving_ = nullptr;    // the one that computes, or has computed, the last batch
  bool was_begun_ahead_ = false;  // it had begun with that batch before it was asked for
  int first_row_ = 0;             // index of the batch's first row among the rows that it was given
  Duration usual_time_{};         // of a step

  // Scratch.
  std::vector<Token> ahead_;
  std::vector<Token> assumed_;
  Batch rows_ahead_;
};

}  // namespace outrider
