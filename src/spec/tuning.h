// Tuning: every number of the speculation policy that was chosen by hand, with its unit and its reason.
//
// None of them should matter much, because an unknown machine must not need other values. How much each one matters is
// measured by `bench/policy_sensitivity`, which runs the simulations with half and with twice the value; docs/TUNING.md
// has the table, and tuning_test.cc compares its names and values with this file. A number without any effect there
// should be removed from here, unless the simulations lack what it is about.
//
// All logarithms are natural; a difference of 0.1 in the logarithm of a time is about 10 %.
#pragma once

#include "spec/belief.h"

namespace outrider {

// CostCurve: how the measured times of steps correct the calibration. Variances are of logarithms of seconds.
struct CostTuning {
  double step_noise = 0.15;                 // standard deviation of the time of single steps of the same width
  double max_surprise = 0.4;                // one step counts as at most this far off, so that an outlier moves little
  double level_variance = 0.04;             // how far a calibration may be off for all widths alike
  double tilt_variance = 0.02;              // how far it may be off for each doubling of the rows
  double band_variance = 0.0025;            // how far it may be off for one band of widths by itself
  double level_drift = 2e-4;                // variance per step: other programs and heat change the level often
  double forgetting = 1e-4;                 // share per step by which the rest returns to its first uncertainty
  double forgetting_in_new_context = 0.25;  // the same share when sequences reach a length that was never measured
  double bump_prior = 16;                   // steps of one width until its own deviation counts half
  double bump_half_life = 100;              // steps of that width until an observation of it counts half
  double age_half_life = 1000;      // steps of any width until it counts half, so that expensive widths are tried again
  double negligible_switch = 0.15;  // as a share of a step of one row; a measured switch that costs less counts as free
};

// AcceptanceModel: what is assumed about a new drafter, as means and variances of log odds.
struct AcceptanceTuning {
  Belief bias = {-0.4, 1};                     // wrong a little more often than right
  Belief per_right_run = {0.3, 0.6};           // better after each length of a run of right tokens
  Belief per_wrong_run = {-0.5, 0.6};          // worse after each length of a run of wrong ones
  Belief per_claimed_log_odds = {0.6, 0.2};    // its own confidence counts a little more than half
  double drift = 1e-5;                         // variance per token by which a drafter may change
  double sequence_variance = 0.3;              // how much requests differ from each other
  double sequence_drift = 0.0003;              // variance per token by which one request may change
  double min_claim = 0.02, max_claim = 0.995;  // confidences are taken to lie between these
};

// Policy: how many draft tokens a step verifies.
struct PolicyTuning {
  double speed_up_half_life = 100;  // tokens over which the recent speed-up is averaged

  // Trials of numbers of rows that seem worse than the best one, in case the curve is wrong about them.
  double optimism = 1;         // standard deviations by which such a number may be cheaper than the curve says
  double min_upside = 2;       // min possible gain of a trial, in units of its expected loss
  double trial_share = 0.003;  // of all tokens: what trials may cost
  double max_credit = 4;       // tokens: limit of the unused share that is kept for later trials
  double first_credit = 2;     // tokens that trials may cost at the start

  // With several sequences a draft must promise more than it costs: the draft with the best estimate tends to be
  // overestimated, and the other sequences wait while it is verified.
  double min_return = 0.1;  // additional gain required for each other sequence, as a share of the cost
  double max_return = 0.5;  // limit of that share for all other sequences together

  // Which draft tokens a request relies on when it cannot afford to lose: always on those that survive with at least
  // `likely_survival`, and on the certainty equivalent of all. `caution` is the aversion to risk (1 / token) where one
  // plain step is at stake and nothing was saved.
  double likely_survival = 0.7;
  double caution = 1;

  // What a step without drafts loses after a rollback, in units of what it would lose at the usual speed-up. (Drafts
  // are made when they are better than usual; value found by simulation.)
  double plain_step_loss = 2;

  // Where another number of rows than in the step before costs something (GPU graphs), drafts of one length come in
  // runs, and each run costs two switches.
  double typical_run = 4;         // steps, before anything is known
  double run_share = 0.1;         // weight of a new run in the mean length of runs
  double run_forgetting = 0.002;  // share per step by which the mean returns to typical_run

  // Plain steps that are taken while drafts pay, to check what a plain step costs. They are taken more often after a
  // measurement that was far from the expectation.
  double surprise = 0.3;          // share by which a measured plain step must differ from the curve to be a surprise
  int plain_steps_in_a_row = 3;   // where a switch costs something: the last of them is measured
  int first_plain_interval = 16;  // steps
  int min_plain_interval = 8;     // steps, after a surprise
  int max_plain_interval = 256;   // steps
};

// PaceBudget: how much slower than plain decoding a request may become.
struct PaceTuning {
  double first_savings = 0.2;  // plain steps with which a request begins
  double long_answer = 100;    // tokens after which an answer is likely to go on for long, so that it may invest
  double long_share = 0.015;   // of the time of each further token: what it may lose in addition
  double max_stake = 0.5;      // share of its account that a sequence may lose in one step
  double max_savings = 12;     // plain steps: limit of the gains that may be lost again
};

// Asking drafters that cost time: draft models and draft servers.
struct AskingTuning {
  int trial_tokens = 3;        // tokens that an unprofitable drafter is asked for in a trial
  double trial_share = 0.005;  // of all time: what trials of drafters that do not pay at present may take
  double first_trials = 1;     // plain steps that trials may take at the start, before the time share has earned any
  int first_slice = 64;        // tokens of a history that a drafter reads per step until reading has been timed
  double slice_share = 0.5;    // of a plain step's time, for reading
  double rollback_forgetting = 0.002;  // share per step by which the measured costs of saving and restoring fade, so
                                       // that drafts which once seemed too expensive are tried again
  int settled_steps = 3;               // where a switch costs something: steps of one shape before they are measured
  // A wait for a whole draft may last until it costs as much as it gains. Only the beginning of the draft has arrived
  // when the wait ends, so the wait may last at most this share of that time.
  double max_wait = 0.4;
  // Tokens that an answer is expected to have. One that is already longer is expected to become twice as long as it is.
  int typical_answer = 100;
  // A draft whose chance to be accepted completely is at least this may be continued by another drafter. Tokens that
  // are added after a less likely one are mostly made in vain.
  double min_joint_survival = 0.7;
  double reading_return = 6;  // reading a history must promise so many times the time that it takes
  double mean_window = 32;    // values over which drafting times are averaged
};

struct Tuning {
  CostTuning cost;
  AcceptanceTuning acceptance;
  PolicyTuning policy;
  PaceTuning pace;
  AskingTuning asking;
};

// Calls visit(name, number) for each number of a Tuning that can be halved and doubled; a number is a double& or an
// int&.
template <typename Visit>
void VisitNumbers(Tuning& tuning, Visit visit) {
  CostTuning& cost = tuning.cost;
  visit("cost.step_noise", cost.step_noise);
  visit("cost.max_surprise", cost.max_surprise);
  visit("cost.level_variance", cost.level_variance);
  visit("cost.tilt_variance", cost.tilt_variance);
  visit("cost.band_variance", cost.band_variance);
  visit("cost.level_drift", cost.level_drift);
  visit("cost.forgetting", cost.forgetting);
  visit("cost.forgetting_in_new_context", cost.forgetting_in_new_context);
  visit("cost.bump_prior", cost.bump_prior);
  visit("cost.bump_half_life", cost.bump_half_life);
  visit("cost.age_half_life", cost.age_half_life);
  visit("cost.negligible_switch", cost.negligible_switch);

  AcceptanceTuning& acceptance = tuning.acceptance;
  visit("acceptance.bias.mean", acceptance.bias.mean);
  visit("acceptance.bias.variance", acceptance.bias.variance);
  visit("acceptance.per_right_run.mean", acceptance.per_right_run.mean);
  visit("acceptance.per_right_run.variance", acceptance.per_right_run.variance);
  visit("acceptance.per_wrong_run.mean", acceptance.per_wrong_run.mean);
  visit("acceptance.per_wrong_run.variance", acceptance.per_wrong_run.variance);
  visit("acceptance.per_claimed_log_odds.mean", acceptance.per_claimed_log_odds.mean);
  visit("acceptance.per_claimed_log_odds.variance", acceptance.per_claimed_log_odds.variance);
  visit("acceptance.drift", acceptance.drift);
  visit("acceptance.sequence_variance", acceptance.sequence_variance);
  visit("acceptance.sequence_drift", acceptance.sequence_drift);
  visit("acceptance.min_claim", acceptance.min_claim);

  PolicyTuning& policy = tuning.policy;
  visit("policy.speed_up_half_life", policy.speed_up_half_life);
  visit("policy.optimism", policy.optimism);
  visit("policy.min_upside", policy.min_upside);
  visit("policy.trial_share", policy.trial_share);
  visit("policy.max_credit", policy.max_credit);
  visit("policy.first_credit", policy.first_credit);
  visit("policy.min_return", policy.min_return);
  visit("policy.max_return", policy.max_return);
  visit("policy.likely_survival", policy.likely_survival);
  visit("policy.caution", policy.caution);
  visit("policy.plain_step_loss", policy.plain_step_loss);
  visit("policy.typical_run", policy.typical_run);
  visit("policy.run_share", policy.run_share);
  visit("policy.run_forgetting", policy.run_forgetting);
  visit("policy.surprise", policy.surprise);
  visit("policy.plain_steps_in_a_row", policy.plain_steps_in_a_row);
  visit("policy.first_plain_interval", policy.first_plain_interval);
  visit("policy.min_plain_interval", policy.min_plain_interval);
  visit("policy.max_plain_interval", policy.max_plain_interval);

  PaceTuning& pace = tuning.pace;
  visit("pace.first_savings", pace.first_savings);
  visit("pace.long_answer", pace.long_answer);
  visit("pace.long_share", pace.long_share);
  visit("pace.max_stake", pace.max_stake);
  visit("pace.max_savings", pace.max_savings);

  AskingTuning& asking = tuning.asking;
  visit("asking.trial_tokens", asking.trial_tokens);
  visit("asking.trial_share", asking.trial_share);
  visit("asking.first_trials", asking.first_trials);
  visit("asking.first_slice", asking.first_slice);
  visit("asking.slice_share", asking.slice_share);
  visit("asking.rollback_forgetting", asking.rollback_forgetting);
  visit("asking.settled_steps", asking.settled_steps);
  visit("asking.max_wait", asking.max_wait);
  visit("asking.typical_answer", asking.typical_answer);
  visit("asking.min_joint_survival", asking.min_joint_survival);
  visit("asking.reading_return", asking.reading_return);
  visit("asking.mean_window", asking.mean_window);
}

// The other numbers: shares near 1, of which the distance to 1 can be halved and doubled.
template <typename Visit>
void VisitSharesNearOne(Tuning& tuning, Visit visit) {
  visit("acceptance.max_claim", tuning.acceptance.max_claim);
}

template <typename Visit>
void VisitAllNumbers(Tuning& tuning, Visit visit) {
  VisitNumbers(tuning, visit);
  VisitSharesNearOne(tuning, visit);
}

}  // namespace outrider
