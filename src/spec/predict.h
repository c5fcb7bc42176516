// What drafting would bring, from measured costs and acceptance: closed forms, and replays of recorded acceptance.
//
// The closed forms take every drafted token to be right with the same chance a, whatever happened before. Real
// acceptance comes in runs, so they promise too much for long drafts; a replay of recorded outcomes keeps the runs.
//
// A draft server drafts ahead while the target verifies. As long as it is right its tokens are there when they are
// needed; after a wrong draft the next one is a round trip and its own drafting away. The target waits for that, or
// takes plain steps meanwhile if there is time for one; then the new draft must foresee what they bring too, or it was
// in vain.
//
// Pure.
#pragma once

#include <span>
#include <vector>

#include "spec/cost_curve.h"

namespace outrider {

struct DraftCosts {
  double token_seconds = 0;       // to draft one token; 0 for drafters that look things up
  bool remote = false;            // drafted elsewhere, meanwhile
  double round_trip_seconds = 0;  // to there
};

// Of a draft model: to draft a token, and to read one of a prompt.
struct DraftModelCosts {
  double token_seconds = 0, read_seconds = 0;
};

// Tokens of a step whose draft has `length` tokens, each right with chance `acceptance` if those before were:
// (1 - a^(k+1)) / (1 - a).
double ExpectedTokens(double acceptance, int length);

// Speed over plain decoding, with drafts of `length` tokens: expected tokens, over the time of such a step in plain
// steps.
double PredictedSpeedUp(const CostCurve& curve, const DraftCosts& costs, double acceptance, int length);

struct BestLength {
  int length = 0;  // 0: do not draft
  double speed_up = 1;
};
BestLength FindBestLength(const CostCurve& curve, const DraftCosts& costs, double acceptance, int most = 32);

// The longest round trip at which a remote draft still makes decoding faster by `least` (1.02 = 2 %); 0 if none does.
double LongestRoundTrip(const CostCurve& curve, double token_seconds, double acceptance, double least = 1.02);

// A step as it was taken.
struct TakenStep {
  int drafted = 0, accepted = 0;
  double draft_seconds = 0;
};

// How often a drafted token was right, of those whose predecessors were.
double AcceptanceOf(std::span<const TakenStep> steps);

// The same as above with recorded drafts instead of a chance: drafts are cut to `length`, and where there was none
// there is none.
double ReplayedSpeedUp(const CostCurve& curve, const DraftCosts& costs, std::span<const TakenStep> steps, int length);
BestLength FindBestLength(const CostCurve& curve, const DraftCosts& costs, std::span<const TakenStep> steps,
                          int most = 32);

// What the very steps come to by the curve, with what drafting cost each.
double ReplayedSpeedUp(const CostCurve& curve, std::span<const TakenStep> steps);

}  // namespace outrider
