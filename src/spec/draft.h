// Draft: tokens that a drafter expects to come next. It never changes the text in VerifyMode::kMatch; with kReject the
// text is another one with the same distribution.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace outrider {

using DrafterId = int;  // index into the server's list of drafters
inline constexpr DrafterId kNoDrafter = -1;

// The name of a drafter under another server's name for it; other names stay as they are.
inline std::string OurDrafterName(const std::string& name) {
  return name == "draft-simple" || name == "draft" ? "model" : name;
}

struct TokenProbability {
  Token token;
  float probability;
};

struct DraftToken {
  Token token;
  float confidence;  // the drafter's own estimate of P(right | all before it right), 0 … 1; see AcceptanceModel
  DrafterId source = kNoDrafter;  // set by the Speculator; per token, as one drafter may continue another's draft
};

struct Draft {
  std::vector<DraftToken> tokens;
  // The distribution that each token was drawn from: as long as `tokens`, or empty. Filled only if asked for
  // (VerifyMode::kReject), and only by drafters that draw at random. Empty means that each token had probability 1.
  std::vector<std::vector<TokenProbability>> distributions;

  int size() const { return static_cast<int>(tokens.size()); }
  bool empty() const { return tokens.empty(); }
  void Clear() {
    tokens.clear();
    distributions.clear();
  }
};

// What one drafter did, over a request or since the start.
struct DrafterStats {
  std::string_view name;  // lives as long as the drafter
  uint64_t verified = 0;  // tokens of its drafts; "proposed" in the API and in the metrics, whose names are kept
  uint64_t accepted = 0;  // of those
  double seconds = 0;     // spent proposing, and reading prompts
};

// How a draft is checked against the target.
enum class VerifyMode {
  // The target draws its own token for each row; a draft token is accepted if it is the same. Never changes the text.
  kMatch,
  // Rejection sampling: accepts more at high temperatures. Texts have the same distribution, but are other texts.
  kReject,
};

// What a request may choose about its own speculation. Unset (-1, empty) = the server's setting.
struct SpeculationOptions {
  bool enabled = true;
  std::vector<std::string> types;  // names of the drafters that may be used; empty = all of the server's
  int n_max = -1;                  // max draft tokens per step
  int n_min = -1;                  // shorter drafts are dropped
  float p_min = -1;                // a draft ends before the first token with a lower confidence than this
  bool provenance = false;         // the answer names the drafter of each accepted token
};

}  // namespace outrider
