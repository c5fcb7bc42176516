// World: a machine and a workload that the Speculator can be run over in milliseconds, without a model.
//
// The machine says how long steps take. The workload consists of requests whose answers are known, together with what
// each drafter says at each position of the answer. So every policy can be compared on the same world, and so can what
// it could have done at best. Worlds are recorded (worlds/recorded.h) or made up (worlds/synthetic.h);
// worlds/replay.h runs them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/token.h"
#include "drafters/planned_step.h"

namespace outrider {

// A token that a drafter proposes.
struct PredictedToken {
  bool right = false;  // it is the token of the answer; meaningless after a wrong one
  float confidence = 0;
};

// What a drafter proposes when the first `position` tokens of an answer are committed: its token at `index` of the
// draft (0 = first); nothing if its draft is shorter.
using Predictions = std::function<std::optional<PredictedToken>(int position, int index)>;

struct WorldDrafter {
  std::string name;
  double token_seconds = 0;       // to draft one token for one sequence; 0 = it looks things up
  double more_token_seconds = 0;  // for each other sequence that gets a token at the same time
  double read_seconds = 0;        // to read a token of a history; 0 = it reads none
  double delay_seconds = 0;       // after it was wrong, its next draft arrives so much later (a draft server)

  bool computes() const { return token_seconds > 0; }
};

struct WorldRequest {
  int prompt_tokens = 16;
  int tokens = 0;                        // of the answer
  int arrives_at = 0;                    // when the first request has generated so many tokens
  std::vector<Predictions> predictions;  // by drafter
};

// Times are in seconds.
struct WorldMachine {
  std::function<double(int rows, int context)> step_seconds;  // of rows that are computed at once
  std::function<double(int rows)> calibrated = nullptr;  // what the calibration measured; null = what is true at first
  double switch_seconds = 0;                             // in addition, if the step before had another shape
  double new_shape_seconds = 0;  // in addition, the first time a shape is computed (the calibration has computed some)
  double noise = 0.12;           // standard deviation of measured times, relative
  bool disturbed = false;        // during every other 400 tokens of the first request it takes twice as long
  bool replays = false;          // a running state: what follows a wrong token is decoded again
  double save_seconds = 0;       // if so: before a draft
  double restore_seconds = 0;    // and after a wrong one
};

struct World {
  std::string name;
  WorldMachine machine;
  std::vector<WorldDrafter> drafters;
  std::vector<WorldRequest> requests;  // begin in this order, as slots become free
  int slots = 1;                       // requests at a time
};

// How the machine of a world computes a step whose sequences have `rows` rows: as libllama does (engine/step_split.h)
// if no slot between the sequences is idle and those with more rows come first. Returns the rows of each part.
std::vector<int> PartsOf(std::vector<int> rows);

}  // namespace outrider
