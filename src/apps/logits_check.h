// LogitsCheck: decodes the same tokens in batches of different shapes and compares their logits, bit by bit, with those
// of decoding one row at a time. Empties the engine's memory as it goes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/tokenizer.h"

namespace outrider {

class LogitsCheck {
 public:
  // Both outlive this object. Everything is computed with `adapters`.
  LogitsCheck(Engine& engine, const Tokenizer& tokenizer, const AdapterSet& adapters = {});

  // Computes the expected logits: of the last rows of the text, each decoded alone. Call it first.
  Status Prepare();

  // Whether the logits are the same if

  // the last rows are decoded in batches of `width`, after the same prompt;
  Result<bool> InBatchesOf(int width);

  // the prompt is decoded in slices of `slice` rows;
  Result<bool> WithPromptInSlicesOf(int slice);

  // they are computed in the last sequence, with a row of each other sequence in every batch;
  Result<bool> BesideOtherSequences();

  // wrong tokens are decoded after each row, and rolled back.
  Result<bool> AfterRollbacks();

 private:
  static constexpr size_t kRows = 33;     // whose logits are compared
  static constexpr int kWhole = 1 << 20;  // a slice as large as a batch may be

  size_t Size() const { return tokens_.size(); }
  size_t Length() const { return static_cast<size_t>(engine_.Length(0)); }

  // Decodes the tokens of sequence 0 that are not in memory, up to `end`, and `wrong` tokens after them.
  Status DecodeUpTo(size_t end, Pos wrong);

  // Decodes all but the last rows in slices, after emptying the memory.
  Status ReadPrompt(SeqId seq, int slice);

  // Decodes the last rows of `seq`, `width` at a time, beside one row of each of the first `neighbours` sequences.
  Result<bool> CompareLastRows(SeqId seq, int width, SeqId neighbours);

  bool Same(std::span<const float> logits, size_t token) const;

  Engine& engine_;
  const AdapterSet adapters_;
  std::vector<Token> tokens_;
  std::vector<std::vector<float>> alone_;  // the expected logits
  Batch batch_;
};

// Empties the memory of all sequences.
void ForgetAll(Engine& engine);

}  // namespace outrider
