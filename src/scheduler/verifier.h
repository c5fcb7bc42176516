// Verifier: decides which draft tokens of a step are accepted. The target draws its own token from each row, as long as
// the tokens before were the same as in the draft. With VerifyMode::kReject a row's token comes from rejection sampling
// (spec/verify.h); requests with a grammar always use kMatch. The drawn tokens are collected in Sequence::drawn, to be
// committed later. A drawn token that ends the answer is marked there (DrawnToken::ends), and the walk stops at it.
#pragma once

#include <span>
#include <vector>

#include "base/clock.h"
#include "drafters/speculator.h"
#include "engine/engine.h"
#include "engine/tokenizer.h"
#include "scheduler/step_batch.h"
#include "spec/draft.h"

namespace outrider {

class Verifier {
 public:
  // All references must outlive this object.
  Verifier(Engine& engine, const Tokenizer& tokenizer, const Speculator& speculator, VerifyMode mode,
           const Clock& clock)
      : engine_(engine), tokenizer_(tokenizer), speculator_(speculator), mode_(mode), clock_(clock) {}

  // After the step was decoded: fills in `accepted`, `draw_time` and the drawn tokens of each entry.
  void Verify(std::span<StepEntry> entries);

  // How the drafts of a request are checked.
  VerifyMode ModeFor(const GenerationRequest& request) const;

 private:
  Token DrawRow(const StepEntry& entry, int row);
  bool KeepDrawn(Sequence& sequence, Token token) const;

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const Speculator& speculator_;
  const VerifyMode mode_;
  const Clock& clock_;
  std::vector<TokenProbability> target_;  // scratch of DrawRow
};

}  // namespace outrider
