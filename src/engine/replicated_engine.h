// ReplicatedEngine: several engines of one model that verify consecutive parts of a draft at the same time (speculation
// parallelism, as in DSI).
//
// While one replica verifies a draft, whoever drafts goes on. What comes after that draft needs not wait for the
// verdict: another replica begins with it, as if the draft were right. If it is, the next step finds its rows half
// computed; if not, they were computed in vain, on hardware that had nothing else to do.
//
//   replica 1  |-- a b c d --|        |-- i j k l --|
//   replica 2         |-- e f g h --|        |-- m n …
//   steps      |      1      |   2    |   3  |
//
// To its caller it is one engine, with one text for each sequence. Every replica has a memory of its own, which is
// brought up to that text when the replica gets rows: it drops what does not agree, and the tokens it lacks ride in
// front of the rows. So each replica decodes each token, and no memory is copied between them. One that lacks more than
// a few reads them first, and foresees nothing meanwhile.
//
// A replica that fails while it foresees is left alone from then on.
//
// Only steps of one sequence are foreseen: with more of them, rows fill the hardware otherwise.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"

namespace outrider {

class ReplicatedEngine : public Engine {
 public:
  // Engines with the same settings, which compute the same numbers and can drop single tokens; at least one. They
  // outlive this, and nobody else uses them meanwhile.
  explicit ReplicatedEngine(const std::vector<Engine*>& replicas);
  ~ReplicatedEngine() override;

  const EngineInfo& info() const override { return info_; }
  Status Decode(const Batch& batch) override;
  std::span<const float> Logits(int row) override;
  Pos Length(SeqId seq) const override { return static_cast<Pos>(texts_[static_cast<size_t>(seq)].size()); }
  Pos TruncateTo(SeqId seq, Pos length) override;
  void SetForesight(Foresight foresight) override { foresight_ = std::move(foresight); }
  std::span<const Token> Underway(SeqId seq, std::span<const Token> text) const override;
  bool WasUnderway() const override { return was_underway_; }

  // Not possible: bytes do not tell the text, which the other replicas would have to read.
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
  Foresight foresight_;
  Replica* serving_ = nullptr;  // the one that computes, or has computed, the last batch
  bool was_underway_ = false;   // before that was asked for
  int first_row_ = 0;           // of the last batch, among those that it was given
  Duration usual_time_{};       // of a step

  // Scratch.
  std::vector<Token> ahead_;
  std::vector<Token> assumed_;
  Batch foreseen_;
};

}  // namespace outrider
