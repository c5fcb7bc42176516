#include "worlds/replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "base/clock.h"
#include "engine/step_split.h"
#include "worlds/replayed_drafter.h"

namespace outrider {
namespace {

constexpr int kMaxRows = 64;  // of a step

// Numbers of rows that the calibration at the start of a server measures.
constexpr std::array kCalibratedRows = {1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 24, 32, 48, 64};

// Answers how steps are computed; decodes nothing.
class LayoutEngine : public FakeEngine {
 public:
  LayoutEngine(int n_sequences, bool replays) : FakeEngine(Info(n_sequences), nullptr), replays_(replays) {}

  void LayOut(std::span<const SequenceRows> step, StepLayout* layout) const override {
    std::vector<int> rows;
    for (const SequenceRows& sequence : step) rows.push_back(sequence.rows);
    layout->parts = PartsOf(std::move(rows));
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

// The machine at work: what steps of certain shapes cost, one after the other.
class MachineAtWork {
 public:
  explicit MachineAtWork(const WorldMachine& machine)
      : machine_(machine), shapes_(kCalibratedRows.begin(), kCalibratedRows.end()) {}

  // The time of a step whose sequences have these rows; `done`: tokens of the first request.
  double Step(std::vector<int> rows, int context, int done) {
    double seconds = 0;
    const std::vector<int> parts = PartsOf(rows);
    for (const int part : parts) seconds += machine_.step_seconds(part, context);
    const bool switched = parts.size() > 1 || parts != last_;
    if (switched) {
      seconds += machine_.switch_seconds * static_cast<double>(parts.size());
      for (const int part : parts) {
        if (shapes_.insert(part).second) seconds += machine_.new_shape_seconds;
      }
    }
    last_ = parts;
    return seconds * Slowness(done);
  }

  double Slowness(int done) const { return machine_.disturbed && done / 400 % 2 == 1 ? 2 : 1; }

  // What it costs to have drafted `drafted` tokens, of which `right` were right. `again`: tokens that the sequence
  // decodes again, before and after.
  double Rollback(int drafted, int right, int* again) const {
    if (!machine_.replays) return 0;
    const bool wrong = right < drafted;
    *again = wrong ? *again + 1 + right : 0;
    return (drafted > 0 ? machine_.save_seconds : 0) + (wrong ? machine_.restore_seconds : 0);
  }

 private:
  const WorldMachine& machine_;
  std::vector<int> last_;
  std::set<int> shapes_;  // computed so far
};

// Which request runs in which slot, and how far it is.
class Requests {
 public:
  struct Running {
    size_t request;
    int done = 0;   // tokens
    int again = 0;  // tokens that are decoded again in the next step
  };

  explicit Requests(const World& world) : world_(world), slots_(static_cast<size_t>(world.slots)) {
    result_.requests.resize(world.requests.size());
  }

  // Requests that have arrived begin in free slots; `begin(slot)` is called for each.
  template <typename Begin>
  void Admit(Begin begin) {
    for (size_t slot = 0; slot < slots_.size() && next_ < world_.requests.size(); ++slot) {
      if (slots_[slot] || world_.requests[next_].arrives_at > first_done_) continue;
      slots_[slot] = Running{next_++};
      begin(slot);
    }
  }

  std::vector<std::optional<Running>>& slots() { return slots_; }
  const WorldRequest& RequestIn(size_t slot) const { return world_.requests[slots_[slot]->request]; }
  int first_done() const { return first_done_; }

  // All running requests spent `seconds`.
  void Spend(double seconds) {
    result_.seconds += seconds;
    for (const auto& running : slots_) {
      if (running) result_.requests[running->request].seconds += seconds;
    }
  }

  // The request in `slot` got `tokens` tokens. Returns whether it is complete; then the slot is free.
  bool Add(size_t slot, int tokens) {
    Running& running = *slots_[slot];
    running.done += tokens;
    if (running.request == 0) first_done_ = running.done;
    if (running.done < world_.requests[running.request].tokens) return false;
    result_.requests[running.request].tokens = running.done;
    slots_[slot].reset();
    return true;
  }

  ReplayResult& result() { return result_; }

 private:
  const World& world_;
  std::vector<std::optional<Running>> slots_;
  size_t next_ = 0;
  int first_done_ = 0;
  ReplayResult result_;
};

CostCurve CalibrationOf(const World& world, const CostTuning& tuning) {
  const WorldMachine& machine = world.machine;
  std::vector<CostPoint> points;
  for (const int rows : kCalibratedRows) {
    points.push_back({rows, machine.calibrated ? machine.calibrated(rows) : machine.step_seconds(rows, 0)});
  }
  return CostCurve(std::move(points), machine.calibrated ? 0 : machine.switch_seconds, tuning);
}

// How many tokens at the beginning of a draft are right.
int RightTokens(const Predictions& predictions, int position, int length) {
  int right = 0;
  while (right < length) {
    const auto token = predictions(position, right);
    if (!token || !token->right) break;
    ++right;
  }
  return right;
}

int LengthOf(const Predictions& predictions, int position, int max_length) {
  int length = 0;
  while (length < max_length && predictions(position, length)) ++length;
  return length;
}

}  // namespace

std::vector<int> PartsOf(std::vector<int> rows) {
  std::sort(rows.begin(), rows.end(), std::greater());
  std::vector<SequenceRows> step;
  for (const int of_sequence : rows) step.push_back({static_cast<SeqId>(step.size()), of_sequence});
  constexpr int kNoLimit = std::numeric_limits<int>::max();
  StepSplit split(kNoLimit, /*shared_memory=*/false, /*kept_tail=*/0);
  std::vector<int> parts;
  for (const StepSplit::Part& part : split.Cut(step)) parts.push_back(RowsOf(part));
  return parts;
}

double ReplayResult::Tokens() const {
  double tokens = 0;
  for (const ReplayedRequest& request : requests) tokens += request.tokens;
  return tokens;
}

ReplayResult ReplayFixed(const World& world, const FixedSetting& setting) {
  MachineAtWork machine(world.machine);
  Requests requests(world);
  std::vector<std::pair<size_t, int>> drafts;  // slot and length
  std::vector<int> rows;
  while (true) {
    requests.Admit([](size_t) {});
    drafts.clear();
    rows.clear();
    int rounds = 0, drafting = 0, context = 0;
    for (size_t slot = 0; slot < requests.slots().size(); ++slot) {
      const auto& running = requests.slots()[slot];
      if (!running) continue;
      const WorldRequest& request = requests.RequestIn(slot);
      int length = std::min(setting.length, request.tokens - running->done - 1);
      if (setting.only_when_settled && running->again > 0) length = 0;
      if (length > 0) length = LengthOf(request.predictions[setting.drafter], running->done, length);
      rows.push_back(1 + running->again + length);
      rounds = std::max(rounds, length);
      drafting += length > 0 ? 1 : 0;
      context += request.prompt_tokens + running->done;
      drafts.emplace_back(slot, length);
    }
    if (drafts.empty()) return std::move(requests.result());
    double seconds = machine.Step(rows, context / static_cast<int>(drafts.size()), requests.first_done());
    if (rounds > 0) {
      const WorldDrafter& drafter = world.drafters[setting.drafter];
      seconds += rounds * (drafter.token_seconds + (drafting - 1) * drafter.more_token_seconds) *
                 machine.Slowness(requests.first_done());
    }
    std::vector<int> added;
    for (const auto& [slot, length] : drafts) {
      auto& running = *requests.slots()[slot];
      const int right =
          length == 0 ? 0 : RightTokens(requests.RequestIn(slot).predictions[setting.drafter], running.done, length);
      seconds += machine.Rollback(length, right, &running.again);
      added.push_back(right + 1);
    }
    requests.Spend(seconds);
    for (size_t i = 0; i < drafts.size(); ++i) requests.Add(drafts[i].first, added[i]);
  }
}

BestFixed FindBestFixed(const World& world, int max_length) {
  BestFixed best = {{}, ReplayPlain(world)};
  for (size_t drafter = 0; drafter < world.drafters.size(); ++drafter) {
    for (int length = 1; length <= max_length; ++length) {
      for (const bool only_when_settled : {false, true}) {
        if (only_when_settled && !world.machine.replays) continue;
        const FixedSetting setting = {drafter, length, only_when_settled};
        ReplayResult result = ReplayFixed(world, setting);
        if (result.seconds < best.result.seconds) best = {setting, std::move(result)};
      }
    }
  }
  return best;
}

std::optional<double> OracleSeconds(const World& world) {
  if (world.slots > 1 || world.machine.replays) return std::nullopt;
  MachineAtWork machine(world.machine);
  double all = 0;
  for (size_t i = 0; i < world.requests.size(); ++i) {
    const WorldRequest& request = world.requests[i];
    std::vector<double> left(static_cast<size_t>(request.tokens) + 1, std::numeric_limits<double>::infinity());
    left.back() = 0;  // seconds from a position to the end
    for (int position = request.tokens - 1; position >= 0; --position) {
      double& best = left[static_cast<size_t>(position)];
      const int context = request.prompt_tokens + position, room = request.tokens - position - 1;
      const double slowness = machine.Slowness(i == 0 ? position : world.requests[0].tokens);
      const auto consider = [&](int drafted, double draft_seconds) {
        const double step = (world.machine.step_seconds(drafted + 1, context) + draft_seconds) * slowness;
        best = std::min(best, step + left[static_cast<size_t>(position + drafted + 1)]);
      };
      consider(0, 0);
      for (size_t drafter = 0; drafter < world.drafters.size(); ++drafter) {
        const int right = RightTokens(request.predictions[drafter], position, std::min(room, kMaxRows - 1));
        for (int length = 1; length <= right; ++length) {
          consider(length, length * world.drafters[drafter].token_seconds);
        }
      }
    }
    all += left[0];
  }
  return all;
}

ReplayResult ReplaySpeculator(const World& world, uint64_t seed, const SpeculatorOptions& options) {
  ManualClock clock;
  const auto advance = [&clock](double seconds) {
    clock.Advance(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  };
  MachineAtWork machine(world.machine);
  Requests requests(world);
  std::vector<const WorldRequest*> in_slot(static_cast<size_t>(world.slots));
  std::vector<std::unique_ptr<Drafter>> drafters;
  for (size_t i = 0; i < world.drafters.size(); ++i) {
    drafters.push_back(std::make_unique<ReplayedDrafter>(world.drafters[i], i, in_slot, clock));
  }
  const LayoutEngine engine(world.slots, world.machine.replays);
  Speculator speculator(std::move(drafters), CalibrationOf(world, options.tuning.cost), options, engine, clock);

  std::mt19937_64 random(seed);
  // Now and then the machine is busy with something else.
  const auto noise = [&] {
    if (std::uniform_real_distribution<double>(0, 1)(random) < 0.01) return 3.0;
    return std::max(0.6, 1 + std::normal_distribution<double>(0, world.machine.noise)(random));
  };
  std::vector<std::vector<Token>> histories(static_cast<size_t>(world.slots));
  std::vector<DraftableSequence> sequences;
  std::vector<int> rows;
  while (true) {
    requests.Admit([&](size_t slot) {
      in_slot[slot] = &requests.RequestIn(slot);
      histories[slot].assign(static_cast<size_t>(in_slot[slot]->prompt_tokens), 0);
      speculator.Begin(static_cast<SeqId>(slot), histories[slot], {}, {});
    });
    sequences.clear();
    int context = 0;
    for (size_t slot = 0; slot < requests.slots().size(); ++slot) {
      const auto& running = requests.slots()[slot];
      if (!running) continue;
      sequences.push_back(
          {static_cast<SeqId>(slot), histories[slot], in_slot[slot]->tokens - running->done - 1, 1 + running->again});
      context += static_cast<int>(histories[slot].size());
    }
    if (sequences.empty()) break;

    const TimePoint start = clock.Now();
    speculator.ChooseDrafts(sequences, {}, kMaxRows - static_cast<int>(sequences.size()));
    double seconds = Milliseconds(clock.Now() - start) / 1000;
    rows.clear();
    for (const DraftableSequence& sequence : sequences) {
      rows.push_back(sequence.rows + speculator.draft(sequence.seq).size());
    }
    const double step = machine.Step(rows, context / static_cast<int>(sequences.size()), requests.first_done());
    seconds += step;
    std::vector<int> added;
    for (const DraftableSequence& sequence : sequences) {
      const auto slot = static_cast<size_t>(sequence.seq);
      auto& running = *requests.slots()[slot];
      const int drafted = speculator.draft(sequence.seq).size();
      int right = 0;
      while (right < drafted &&
             speculator.draft(sequence.seq).tokens[static_cast<size_t>(right)].token == TruthAt(running.done + right))
        ++right;
      for (int i = 0; i <= right; ++i) histories[slot].push_back(TruthAt(running.done + i));
      speculator.Commit(sequence.seq, {histories[slot], right + 1}, right);
      seconds += machine.Rollback(drafted, right, &running.again);
      if (world.machine.replays && drafted > 0) speculator.ObserveSave(world.machine.save_seconds);
      if (world.machine.replays && right < drafted) speculator.ObserveRestore(world.machine.restore_seconds);
      added.push_back(right + 1);
    }
    const double measured = step * noise();
    advance(measured);
    speculator.ObserveStep(measured);
    requests.Spend(seconds);
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto slot = static_cast<size_t>(sequences[i].seq);
      if (requests.Add(slot, added[i])) speculator.End(sequences[i].seq, histories[slot], true);
    }
  }
  ReplayResult& result = requests.result();
  result.drafters = speculator.stats();
  for (size_t i = 0; i < result.drafters.size(); ++i) result.drafters[i].name = world.drafters[i].name;
  return std::move(result);
}

}  // namespace outrider
