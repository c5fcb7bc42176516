// Predicts the speed-up of drafting from measured costs and acceptance: by closed forms, and by replays of recorded
// acceptance.
//
// The closed forms assume that every drafted token is right with the same chance a, independently of the tokens before.
// Real acceptance comes in runs, so they promise too much for long drafts; a replay of recorded outcomes keeps the
// runs.
//
// A draft server drafts ahead while the target verifies. As long as its drafts are right, the next tokens are ready
// when they are needed. After a wrong draft, the next one arrives after a round trip and the time of drafting. If that
// is shorter than a plain step, the target waits. Otherwise it takes plain steps until the draft arrives. The draft
// does not know the tokens of these steps, so it is only useful if it begins with the same tokens.
//
// The prediction depends only on the arguments.
#pragma once

#include <span>
#include <vector>

#include "spec/cost_curve.h"

namespace outrider {

struct DraftCosts {
  double token_seconds = 0;       // to draft one token; 0 for drafters that look things up
  bool remote = false;            // drafted by a draft server, while the target verifies
  double round_trip_seconds = 0;  // to that server
};

// Of a draft model: to draft a token, and to read one of a prompt.
struct DraftModelCosts {
  double token_seconds = 0, read_seconds = 0;
};

// Tokens of a step whose draft has `length` tokens, each right with chance `acceptance` if those before were:
// (1 - a^(k+1)) / (1 - a).
double ExpectedTokens(double acceptance, int length);

// The speed-up over plain decoding with drafts of `length` tokens: expected tokens of a step, divided by its time in
// units of plain steps.
double PredictedSpeedUp(const CostCurve& curve, const DraftCosts& costs, double acceptance, int length);

struct BestLength {
  int length = 0;  // 0: do not draft
  double speed_up = 1;
};
BestLength FindBestLength(const CostCurve& curve, const DraftCosts& costs, double acceptance, int max_length = 32);

// The longest round trip, in seconds, with which remote drafts still give a speed-up of `min_speed_up` (1.02 = 2 %); 0
// if none does.
double LongestRoundTrip(const CostCurve& curve, double token_seconds, double acceptance, double min_speed_up = 1.02);

// A step as it was taken.
struct TakenStep {
  int drafted = 0, accepted = 0;
  double draft_seconds = 0;
};

// The share of right tokens among the drafted tokens whose predecessors were all right.
double AcceptanceOf(std::span<const TakenStep> steps);

// As PredictedSpeedUp and FindBestLength above, with recorded drafts instead of a chance. Drafts are cut to `length`;
// steps without a draft stay without one.
double ReplayedSpeedUp(const CostCurve& curve, const DraftCosts& costs, std::span<const TakenStep> steps, int length);
BestLength FindBestLength(const CostCurve& curve, const DraftCosts& costs, std::span<const TakenStep> steps,
                          int max_length = 32);

// The speed-up of the recorded steps as they were taken, by the curve and the recorded times of drafting.
double ReplayedSpeedUp(const CostCurve& curve, std::span<const TakenStep> steps);

}  // namespace outrider
