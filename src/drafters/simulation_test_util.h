// Synthetic worlds for the Speculator: drafters that are right by a scripted process, steps that cost what a curve
// says. speculator_simulation_test holds the Speculator to the best fixed draft length; bench/policy_sensitivity shows
// what each number of the Tuning is good for.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drafters/speculator.h"
#include "engine/fake_engine.h"

namespace outrider::simulation {

inline constexpr double kPlainSeconds = 0.01;  // of a step of one row; the worlds below count in this unit
inline constexpr int kPromptTokens = 16;
inline constexpr int kMaxFixedLength = 24;  // longest fixed draft to compare with
inline constexpr int kMaxRows = 64;

// What is asked for in tests, as a share of the throughput of the best fixed length (which may be 0): on average over
// the seeds, and a little less of each.
inline constexpr double kFriendly = 0.95;
inline constexpr double kHostile = 0.98;
inline constexpr double kUnsettled = 0.9;  // each change of length costs half a plain step
inline constexpr double kRestless = 0.75;  // and where it costs two
inline constexpr double kNonsense = 0.8;   // the calibration is of another machine altogether
inline constexpr double kLuck = 0.03;

using Random = std::mt19937_64;

inline double Uniform(Random& random) {
  return std::uniform_real_distribution<double>(0, 1)(random);
}

// How a drafter fares at each position of one sequence, whoever asks and whenever.
struct Fortune {
  std::vector<bool> right;
  std::vector<float> confidence;
};

// P(right) at each position.
using Chances = std::function<std::vector<double>(int tokens, Random&)>;

// What the drafter says of itself, given its chance there and whether it is right.
using Confidence = std::function<double(double chance, bool right, Random&)>;

struct DrafterScript {
  Chances chances;
  Confidence confidence;
  double token_cost = 0;  // in plain steps; 0 = looks things up
  int unread = 0;         // tokens of each prompt that it must read before it can draft
  double read_cost = 0;   // of one of these, in plain steps
  double delay = 0;       // in plain steps: after it was wrong, its next draft arrives so much later (a draft server)
};

using Cost = std::function<double(int rows)>;

struct World {
  std::string name;
  double min_share;  // one of the shares above
  Cost cost;
  std::vector<DrafterScript> drafters;
  Cost calibrated = nullptr;        // what the calibration saw; null = the truth
  int tokens = 4000;                // of each sequence
  std::vector<int> arrivals = {0};  // when each sequence begins, in tokens of the first
  bool disturbed = false;           // every other 400 tokens the machine takes twice as long
  double noise = 0.12;              // of step times, relative
  double switch_cost = 0;           // in plain steps: of a step with other rows than the one before
  bool replays = false;             // a running state: what follows a wrong token is decoded again
  double save_cost = 0.02;          // if so, in plain steps: before a draft
  double restore_cost = 0.03;       // and after a wrong one
};

// ---- costs ----

inline double Interpolated(std::initializer_list<std::pair<int, double>> points, int rows) {
  auto high = points.begin();
  while (high != points.end() && high->first < rows) ++high;
  if (high == points.begin()) return high->second;
  if (high == points.end()) {
    const auto last = points.end() - 1, before = last - 1;
    return last->second + (rows - last->first) * (last->second - before->second) / (last->first - before->first);
  }
  const auto low = high - 1;
  return low->second + (rows - low->first) * (high->second - low->second) / (high->first - low->first);
}

inline double Flat(int rows) {
  return 1 + 0.01 * (rows - 1);
}
inline double Mild(int rows) {
  return 1 + 0.1 * (rows - 1);
}
inline double Steep(int rows) {
  return rows;
}
inline double IceLake(int rows) {
  return Interpolated({{1, 1}, {2, 1.5}, {3, 1.8}, {4, 1.26}, {5, 1.6}, {8, 2.2}, {16, 3.8}}, rows);
}
inline double Zen4(int rows) {
  return Interpolated({{1, 1}, {2, 1.9}, {3, 2.6}, {4, 2.5}, {5, 3.2}, {8, 4.4}, {16, 6.6}}, rows);
}
inline double Gpu(int rows) {
  return (rows < 2 ? 1 : rows < 5 ? 1.2 : rows < 9 ? 1.5 : rows < 17 ? 1.9 : 2.8) + 0.01 * rows;
}

// ---- chances ----

inline Chances Constant(double chance) {
  return [=](int tokens, Random&) { return std::vector<double>(static_cast<size_t>(tokens), chance); };
}

inline Chances Switching(double before, double after, int when) {
  return [=](int tokens, Random&) {
    std::vector<double> chances(static_cast<size_t>(tokens), before);
    std::fill(chances.begin() + when, chances.end(), after);
    return chances;
  };
}

// Passages of about `good_tokens` that are copied, and what lies between.
inline Chances Bursty(double good, int good_tokens, double bad, int bad_tokens) {
  return [=](int tokens, Random& random) {
    std::vector<double> chances;
    for (bool is_good = false; chances.size() < static_cast<size_t>(tokens); is_good = !is_good) {
      const double mean = is_good ? good_tokens : bad_tokens;
      chances.insert(chances.end(), static_cast<size_t>(mean * (0.5 + Uniform(random))) + 1, is_good ? good : bad);
    }
    chances.resize(static_cast<size_t>(tokens));
    return chances;
  };
}

// Log odds wander around those of `mean`.
inline Chances Autocorrelated(double mean, double memory_tokens, double spread) {
  return [=](int tokens, Random& random) {
    const double centre = std::log(mean / (1 - mean)), kept = std::exp(-1 / memory_tokens);
    std::normal_distribution<double> gauss(0, spread * std::sqrt(1 - kept * kept));
    std::vector<double> chances;
    double deviation = 0;
    for (int i = 0; i < tokens; ++i) {
      deviation = deviation * kept + gauss(random);
      chances.push_back(1 / (1 + std::exp(-centre - deviation)));
    }
    return chances;
  };
}

// Good for just as long as it takes to be trusted, then bad.
inline Chances Alternating(int good_tokens, int bad_tokens) {
  return [=](int tokens, Random&) {
    std::vector<double> chances;
    for (int i = 0; i < tokens; ++i) chances.push_back(i % (good_tokens + bad_tokens) < good_tokens ? 1 : 0);
    return chances;
  };
}

// ---- confidences ----

inline Confidence Always(double confidence) {
  return [=](double, bool, Random&) { return confidence; };
}

// Knows more than the average: nearer to 1 where it is right.
inline Confidence Informed(double knowledge) {
  return [=](double chance, bool right, Random& random) {
    const double truth = right ? 1 : 0;
    return std::clamp(chance + knowledge * (truth - chance) * Uniform(random), 0.0, 1.0);
  };
}

inline Confidence Random01() {
  return [](double, bool, Random& random) { return Uniform(random); };
}

// ---- the world at work ----

inline Token TruthAt(SeqId seq, int position) {
  return (position * 7 + seq * 13) % 1000;
}

inline Duration PlainSteps(double steps) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(steps * kPlainSeconds));
}

class ScriptedDrafter : public Drafter, public HistoryReader {
 public:
  ScriptedDrafter(const DrafterScript& script, std::vector<Fortune> fortunes, ManualClock& clock)
      : Drafter({.name = "scripted", .computes = script.token_cost > 0, .draws = script.token_cost > 0}),
        script_(script),
        fortunes_(std::move(fortunes)),
        unread_(fortunes_.size(), script.unread),
        arrives_(fortunes_.size()),
        clock_(clock) {}

  void Begin(SeqId, std::span<const Token>, const DraftContext&) override {}
  void Commit(SeqId seq, const CommittedStep& step) override {
    const auto last = step.history.size() - kPromptTokens - 1;
    if (!fortunes_[static_cast<size_t>(seq)].right[last])
      arrives_[static_cast<size_t>(seq)] = clock_.Now() + PlainSteps(script_.delay);
  }
  void End(SeqId, std::span<const Token>, bool) override {}

  HistoryReader* reader() override { return script_.unread > 0 ? this : nullptr; }
  int Lag(SeqId seq, std::span<const Token>) const override { return unread_[static_cast<size_t>(seq)]; }
  void Read(SeqId seq, std::span<const Token>, int tokens) override {
    unread_[static_cast<size_t>(seq)] -= tokens;
    clock_.Advance(PlainSteps(tokens * script_.read_cost));
  }

  void Propose(std::span<Proposal*> proposals) override {
    int rounds = 0;
    for (Proposal* proposal : proposals) {
      const TimePoint arrives = arrives_[static_cast<size_t>(proposal->seq)];
      const auto patience = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(proposal->patience));
      clock_.Advance(std::clamp(arrives - clock_.Now(), Duration::zero(), patience));
      proposal->due = std::max(0.0, std::chrono::duration<double>(arrives - clock_.Now()).count());
      if (proposal->due > 0) continue;
      const int given = proposal->draft.size();
      const Fortune& fortune = fortunes_[static_cast<size_t>(proposal->seq)];
      double survival = 1;
      int made = 0;
      for (size_t at = proposal->history.size() - kPromptTokens + static_cast<size_t>(given);
           proposal->draft.size() < proposal->max_tokens && at < fortune.right.size(); ++at) {
        const float confidence = fortune.confidence[at];
        ++made;  // a token has to be computed to find out that it is not worth proposing
        survival *= confidence;
        if (confidence < proposal->p_min || survival < proposal->min_survival) break;
        const Token truth = TruthAt(proposal->seq, static_cast<int>(at));
        proposal->draft.tokens.push_back({fortune.right[at] ? truth : truth + 1, confidence, kNoDrafter});
      }
      rounds = std::max(rounds, made);
    }
    clock_.Advance(std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(rounds * (script_.token_cost * kPlainSeconds))));
  }

 private:
  const DrafterScript script_;
  std::vector<Fortune> fortunes_;   // by sequence
  std::vector<int> unread_;         // by sequence
  std::vector<TimePoint> arrives_;  // by sequence: when a draft is there
  ManualClock& clock_;
};

// Sequences of unequal width are computed in parts of equally many rows for each.
inline std::vector<int> PartsOf(std::vector<int> widths) {
  std::sort(widths.begin(), widths.end());
  std::vector<int> parts;
  for (size_t i = 0; i < widths.size(); ++i) {
    const int more = widths[i] - (i == 0 ? 0 : widths[i - 1]);
    if (more > 0) parts.push_back(more * static_cast<int>(widths.size() - i));
  }
  return parts;
}

// Answers how steps are computed; decodes nothing.
class SimulatedEngine : public FakeEngine {
 public:
  SimulatedEngine(int n_sequences, bool replays) : FakeEngine(Info(n_sequences), nullptr), replays_(replays) {}

  void LayOut(std::span<const SequenceRows> step, StepLayout* layout) const override {
    std::vector<int> widths;
    for (const SequenceRows& sequence : step) widths.push_back(sequence.rows);
    layout->parts = PartsOf(std::move(widths));
    layout->free_rollback = replays_ ? 0 : StepLayout::kAllRows;
  }

 private:
  static EngineInfo Info(int n_sequences) {
    EngineInfo info;
    info.n_sequences = n_sequences;
    return info;
  }

  const bool replays_;
};

// One world with its dice thrown.
class Simulation {
 public:
  Simulation(const World& world, uint64_t seed) : world_(world), seed_(seed) {
    for (int rows = 0; rows <= most_rows(); ++rows) costs_.push_back(world.cost(std::max(rows, 1)));
    Random random(seed);
    for (const DrafterScript& script : world.drafters) {
      auto& fortunes = fortunes_.emplace_back();
      for (size_t seq = 0; seq < world.arrivals.size(); ++seq) {
        Fortune& fortune = fortunes.emplace_back();
        for (const double chance : script.chances(world.tokens, random)) {
          fortune.right.push_back(Uniform(random) < chance);
          fortune.confidence.push_back(static_cast<float>(script.confidence(chance, fortune.right.back(), random)));
        }
      }
    }
  }

  // Plain steps per token, the lower the better, of always drafting `length` tokens with `drafter`; unless `patient`,
  // also for a sequence that decodes tokens again.
  double RunFixed(size_t drafter, int length, bool patient = false) const {
    const double draft_cost = world_.drafters[drafter].token_cost;
    std::vector<int> done(world_.arrivals.size()), again(world_.arrivals.size());
    std::vector<std::pair<size_t, int>> steps;
    double spent = 0;
    std::vector<int> last;
    while (true) {
      int rounds = 0;
      std::vector<int> widths;
      steps.clear();
      for (size_t seq = 0; seq < done.size(); ++seq) {
        if (done[seq] == world_.tokens || !Arrived(seq, done[0])) continue;
        const int drafted = patient && again[seq] > 0 ? 0 : std::min(length, world_.tokens - done[seq] - 1);
        widths.push_back(1 + again[seq] + drafted);
        rounds = std::max(rounds, drafted);
        steps.emplace_back(seq, drafted);
      }
      if (steps.empty()) return spent / Total();
      const double slowness = Slowness(done[0]);
      for (const auto& [seq, drafted] : steps) {
        int right = 0;
        while (right < drafted && fortunes_[drafter][seq].right[static_cast<size_t>(done[seq] + right)]) ++right;
        done[seq] += right + 1;
        spent += RollbackCost(drafted, right, &again[seq]) * slowness;
      }
      spent += (CostOf(widths) + rounds * draft_cost + SwitchCost(widths, &last)) * slowness;
    }
  }

  // The same for the Speculator.
  double RunSpeculator(SpeculatorOptions options = {}) const {
    ManualClock clock;
    std::vector<std::unique_ptr<Drafter>> drafters;
    for (size_t i = 0; i < fortunes_.size(); ++i) {
      drafters.push_back(std::make_unique<ScriptedDrafter>(world_.drafters[i], fortunes_[i], clock));
    }
    const auto sequences = static_cast<int>(world_.arrivals.size());
    const SimulatedEngine engine(sequences, world_.replays);
    Speculator speculator(std::move(drafters), Calibration(options.tuning.cost), options, engine, clock);
    std::vector<int> again(world_.arrivals.size());

    Random random(seed_ + 1);
    std::vector<std::vector<Token>> histories(world_.arrivals.size(), std::vector<Token>(kPromptTokens));
    std::vector<DraftableSequence> turns;
    std::vector<bool> begun(world_.arrivals.size());
    std::vector<int> last;
    double spent = 0;
    while (true) {
      turns.clear();
      for (SeqId seq = 0; seq < sequences; ++seq) {
        std::vector<Token>& history = histories[static_cast<size_t>(seq)];
        const int done = static_cast<int>(history.size()) - kPromptTokens;
        if (done == world_.tokens ||
            !Arrived(static_cast<size_t>(seq), static_cast<int>(histories[0].size()) - kPromptTokens))
          continue;
        if (!begun[static_cast<size_t>(seq)]) speculator.Begin(seq, history, {}, {});
        begun[static_cast<size_t>(seq)] = true;
        turns.push_back({seq, history, world_.tokens - done - 1, 1 + again[static_cast<size_t>(seq)]});
      }
      if (turns.empty()) break;

      const TimePoint start = clock.Now();
      speculator.Plan(turns, {}, kMaxRows - static_cast<int>(turns.size()));
      spent += std::chrono::duration<double>(clock.Now() - start).count() / kPlainSeconds;
      std::vector<int> widths;
      for (const DraftableSequence& turn : turns) widths.push_back(turn.rows + speculator.draft(turn.seq).size());
      const double cost = (CostOf(widths) + SwitchCost(widths, &last)) *
                          Slowness(static_cast<int>(histories[0].size()) - kPromptTokens);
      spent += cost;
      for (const DraftableSequence& turn : turns) {
        std::vector<Token>& history = histories[static_cast<size_t>(turn.seq)];
        const int drafted = speculator.draft(turn.seq).size();
        const int added = Verify(turn.seq, speculator.draft(turn.seq), history);
        speculator.Commit(turn.seq, {history, added}, added - 1);
        spent += RollbackCost(drafted, added - 1, &again[static_cast<size_t>(turn.seq)]);
        if (world_.replays && drafted > 0) speculator.ObserveSave(world_.save_cost * kPlainSeconds);
        if (world_.replays && added <= drafted) speculator.ObserveRestore(world_.restore_cost * kPlainSeconds);
        if (static_cast<int>(history.size()) - kPromptTokens == world_.tokens) speculator.End(turn.seq, history, true);
      }
      const double seconds = cost * kPlainSeconds * Noise(random);
      clock.Advance(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
      speculator.ObserveStep(seconds);
    }
    return spent / Total();
  }

 private:
  int most_rows() const {
    const int most = std::max(kMaxRows, (kMaxFixedLength + 1) * static_cast<int>(world_.arrivals.size()));
    return world_.replays ? most + world_.tokens : most;  // a fixed length may decode all again and again
  }

  // Each part of a step of unequal widths is another shape.
  double SwitchCost(const std::vector<int>& widths, std::vector<int>* last) const {
    const bool switched = std::exchange(*last, widths) != widths;
    const auto parts = static_cast<double>(std::set<int>(widths.begin(), widths.end()).size());
    return parts > 1 ? parts * world_.switch_cost : (switched ? world_.switch_cost : 0);
  }

  // What it costs to have drafted; `again`: tokens that the sequence decodes again, before and after.
  double RollbackCost(int drafted, int right, int* again) const {
    if (!world_.replays) return 0;
    const bool wrong = right < drafted;
    *again = wrong ? *again + 1 + right : 0;
    return (drafted > 0 ? world_.save_cost : 0) + (wrong ? world_.restore_cost : 0);
  }

  double CostOf(const std::vector<int>& widths) const {
    double cost = 0;
    for (const int rows : PartsOf(widths)) cost += costs_[static_cast<size_t>(rows)];
    return cost;
  }

  bool Arrived(size_t seq, int first_done) const { return first_done >= world_.arrivals[seq]; }
  double Slowness(int first_done) const { return world_.disturbed && first_done / 400 % 2 == 1 ? 2 : 1; }
  double Total() const { return static_cast<double>(world_.tokens) * static_cast<double>(world_.arrivals.size()); }

  CostCurve Calibration(const CostTuning& tuning) const {
    std::vector<CostPoint> points;
    for (const int rows : {1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 24, 32, 48, 64}) {
      points.push_back({rows, kPlainSeconds * (world_.calibrated ? world_.calibrated(rows) : world_.cost(rows))});
    }
    return CostCurve(std::move(points), world_.calibrated ? 0 : world_.switch_cost * kPlainSeconds, tuning);
  }

  static int Verify(SeqId seq, const Draft& draft, std::vector<Token>& history) {
    int added = 0;
    for (bool right = true; right; ++added) {
      const Token truth = TruthAt(seq, static_cast<int>(history.size()) - kPromptTokens);
      right = added < draft.size() && draft.tokens[static_cast<size_t>(added)].token == truth;
      history.push_back(truth);
    }
    return added;
  }

  // Now and then the machine is busy elsewhere.
  double Noise(Random& random) const {
    if (Uniform(random) < 0.01) return 3;
    return std::max(0.6, 1 + std::normal_distribution<double>(0, world_.noise)(random));
  }

  const World& world_;
  uint64_t seed_;
  std::vector<double> costs_;                   // by rows
  std::vector<std::vector<Fortune>> fortunes_;  // by drafter, by sequence
};

inline Cost RowsOff(const Cost& cost, double factor) {
  return [=](int rows) { return cost(1) + (cost(rows) - cost(1)) * factor; };
}

inline std::string Short(double number) {
  return std::to_string(number).substr(0, 4);
}

inline void AddLookups(const std::string& on, const Cost& cost, std::vector<World>& worlds) {
  for (const double chance : {0.2, 0.5, 0.8, 0.95}) {
    worlds.push_back({"constant " + Short(chance) + on, kFriendly, cost, {{Constant(chance), Always(0.6)}}});
  }
  const Chances bursty = Bursty(0.98, 60, 0.05, 200);
  worlds.push_back({"bursty" + on, kFriendly, cost, {{bursty, Always(0.7)}}});
  worlds.push_back({"bursty, informed" + on, kFriendly, cost, {{bursty, Informed(0.7)}}});
  worlds.push_back({"autocorrelated" + on, kFriendly, cost, {{Autocorrelated(0.6, 30, 2), Always(0.6)}}});
  worlds.push_back({"autocorrelated, informed" + on, kFriendly, cost, {{Autocorrelated(0.6, 5, 2), Informed(0.5)}}});
  worlds.push_back({"dies after 1000" + on, kFriendly, cost, {{Switching(0.9, 0.02, 1000), Always(0.8)}}});
  worlds.push_back({"gets good after 1000" + on, kFriendly, cost, {{Switching(0.02, 0.9, 1000), Always(0.8)}}});
  worlds.push_back(
      {"two drafters" + on, kFriendly, cost, {{Constant(0.3), Always(0.9)}, {Constant(0.8), Always(0.5)}}});
  World load = {"load 1 to 4 sequences" + on, kFriendly, cost, {{Constant(0.7), Informed(0.3)}}};
  World disturbed = {"disturbed 0.80" + on, kFriendly, cost, {{Constant(0.8), Always(0.6)}}};
  disturbed.disturbed = true;
  worlds.push_back(disturbed);
  load.tokens = 2000;
  load.arrivals = {0, 500, 1000, 1000};
  worlds.push_back(load);
}

inline void AddHostile(const std::string& on, const Cost& cost, std::vector<World>& worlds) {
  worlds.push_back({"confident and always wrong" + on, kHostile, cost, {{Constant(0), Always(0.99)}}});
  worlds.push_back({"random confidence, right 0.1" + on, kHostile, cost, {{Constant(0.1), Random01()}}});
  worlds.push_back({"alternating 8 and 40" + on, kHostile, cost, {{Alternating(8, 40), Always(0.9)}}});
  worlds.push_back({"alternating 3 and 3" + on, kHostile, cost, {{Alternating(3, 3), Always(0.9)}}});
}

inline void AddComputing(const std::string& on, const Cost& cost, std::vector<World>& worlds) {
  for (const double price : {0.05, 0.2, 1.0}) {
    const std::string drafting = ", draft " + Short(price) + on;
    worlds.push_back({"constant 0.8" + drafting, kFriendly, cost, {{Constant(0.8), Informed(0.3), price}}});
    worlds.push_back({"bursty" + drafting, kFriendly, cost, {{Bursty(0.98, 100, 0.2, 100), Informed(0.3), price}}});
    worlds.push_back({"constant 0.05" + drafting, kHostile, cost, {{Constant(0.05), Always(0.9), price}}});
  }
}

inline void AddMiscalibrated(const std::string& on, const Cost& cost, std::vector<World>& worlds) {
  for (const double chance : {0.5, 0.8, 0.95}) {
    for (const double factor : {0.5, 2.0}) {
      const std::string name = "constant " + Short(chance) + ", rows calibrated x" + Short(factor) + on;
      worlds.push_back({name, kFriendly, cost, {{Constant(chance), Always(0.8)}}, RowsOff(cost, factor)});
    }
  }
}

inline void AddReplaying(const std::string& on, const Cost& cost, std::vector<World>& worlds) {
  std::vector<World> replaying;
  for (const double chance : {0.5, 0.8, 0.95}) {
    replaying.push_back({"constant " + Short(chance), kFriendly, cost, {{Constant(chance), Always(0.6)}}});
  }
  replaying.push_back({"bursty", kFriendly, cost, {{Bursty(0.98, 60, 0.05, 200), Informed(0.7)}}});
  replaying.push_back({"confident and always wrong", kHostile, cost, {{Constant(0), Always(0.99)}}});
  replaying.push_back({"random confidence, right 0.1", kHostile, cost, {{Constant(0.1), Random01()}}});
  for (World& world : replaying) {
    world.name += ", replaying" + on;
    world.replays = true;
    worlds.push_back(std::move(world));
  }
}

inline void AddSwitching(const std::string& on, const Cost& cost, double switch_cost, std::vector<World>& worlds) {
  std::vector<World> switching;
  for (const double chance : {0.5, 0.8, 0.95}) {
    switching.push_back({"constant " + Short(chance), kFriendly, cost, {{Constant(chance), Always(0.6)}}});
  }
  switching.push_back({"random confidence, right 0.1", kHostile, cost, {{Constant(0.1), Random01()}}});
  switching.push_back({"bursty, informed", kFriendly, cost, {{Bursty(0.98, 60, 0.05, 200), Informed(0.7)}}});
  switching.push_back({"constant 0.05, draft 0.2", kHostile, cost, {{Constant(0.05), Always(0.9), 0.2}}});
  switching.push_back({"constant 0.8, draft 0.2", kFriendly, cost, {{Constant(0.8), Informed(0.3), 0.2}}});
  World load = {"load 1 to 4 sequences", kFriendly, cost, {{Constant(0.7), Informed(0.3)}}};
  load.tokens = 2000;
  load.arrivals = {0, 500, 1000, 1000};
  switching.push_back(load);
  load.name = "load, draft 0.2";
  load.drafters[0].token_cost = 0.2;
  switching.push_back(load);
  for (World& world : switching) {
    world.name += ", switching" + on;
    world.switch_cost = switch_cost;
    if (world.min_share < kHostile) world.min_share = switch_cost > 1 ? kRestless : kUnsettled;
    worlds.push_back(std::move(world));
  }
}

inline std::vector<World> Worlds() {
  std::vector<World> worlds;
  const std::pair<std::string, Cost> curves[] = {
      {", flat", Flat}, {", mild", Mild}, {", Ice Lake", IceLake}, {", Zen 4", Zen4}, {", GPU", Gpu}};
  for (const auto& [on, cost] : curves) {
    AddLookups(on, cost, worlds);
    AddHostile(on, cost, worlds);
    AddMiscalibrated(on, cost, worlds);
    AddReplaying(on, cost, worlds);
  }
  AddComputing(", mild", Mild, worlds);
  AddComputing(", Ice Lake", IceLake, worlds);
  AddComputing(", GPU", Gpu, worlds);
  AddSwitching(", mild", Mild, 0.5, worlds);
  AddSwitching(", GPU", Gpu, 2, worlds);  // as on an H200
  worlds.push_back({"constant 0.8, steep", kHostile, Steep, {{Constant(0.8), Always(0.8)}}});
  worlds.push_back({"bursty, steep", kHostile, Steep, {{Bursty(0.98, 60, 0.05, 200), Always(0.7)}}});
  for (const double chance : {0.5, 0.8, 0.95}) {
    const std::string name = "constant " + Short(chance);
    worlds.push_back({name + ", flat but is Zen 4", kNonsense, Zen4, {{Constant(chance), Always(0.8)}}, Flat});
    worlds.push_back({name + ", Zen 4 but is GPU", kNonsense, Gpu, {{Constant(chance), Always(0.8)}}, Zen4});
  }
  return worlds;
}

// Worlds that no fixed length can be compared with: drafters that must read a prompt first, in answers of few tokens,
// and drafts that come from far away.
inline std::vector<World> WorldsWithWaits() {
  std::vector<World> worlds;
  for (const int tokens : {40, 200}) {
    for (const int unread : {100, 2000}) {
      for (const double price : {0.05, 0.2}) {
        World world = {
            "reads " + std::to_string(unread) + ", answers of " + std::to_string(tokens) + ", draft " + Short(price),
            kHostile,
            Mild,
            {{Constant(0.8), Informed(0.3), price, unread, price / 20}}};
        world.tokens = tokens;
        worlds.push_back(world);
      }
    }
  }
  for (const double chance : {0.5, 0.8, 0.95}) {
    for (const double delay : {0.1, 0.4, 1.5}) {
      worlds.push_back({"far " + Short(delay) + ", constant " + Short(chance),
                        kHostile,
                        Mild,
                        {{Constant(chance), Always(0.8), 0, 0, 0, delay}}});
    }
  }
  return worlds;
}

}  // namespace outrider::simulation
