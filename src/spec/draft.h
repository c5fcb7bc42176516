// Draft: tokens that somebody thinks come next. A guess costs time at most; it never changes what is generated.
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
  float confidence;  // the drafter's own idea of P(right | all before it right), 0 … 1; learned about, not trusted
  DrafterId source = kNoDrafter;  // filled in by the Speculator; per token, since one drafter may continue another's
};

struct Draft {
  std::vector<DraftToken> tokens;
  // Only if asked for (VerifyMode::kReject), and only from drafters that draw at random: what each token was drawn
  // from, as long as `tokens` or empty. Empty stands for certainty in each token.
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
  uint64_t proposed = 0;  // tokens verified
  uint64_t accepted = 0;
  double seconds = 0;  // spent proposing, and reading prompts
};

// How a draft is checked against the target.
enum class VerifyMode {
  kMatch,  // the target draws its own token for each row; the draft is right if it is the same. Never changes the text.
  kReject,  // rejection sampling: more is accepted at high temperatures; same distribution, but another text
};

// What a request may say about its own speculation. Unset (-1, empty) = as the server was told.
struct SpeculationOptions {
  bool enabled = true;
  std::vector<std::string> types;  // names of the drafters that may be used; empty = all of the server's
  int n_max = -1;                  // most draft tokens per step
  int n_min = -1;                  // shorter drafts are dropped
  float p_min = -1;                // a draft ends before the first token its drafter believes in less than this
  bool provenance = false;         // the answer tells which drafter foresaw each token
};

}  // namespace outrider
