// Tests an engine's memory with random scripts of drafts, rejections, cancelled requests, shared prefixes and slot
// files. After every step the logits of each committed row, and from time to time the whole memory byte by byte, must
// be the same as those of an engine that decodes only the committed tokens, without rollbacks. Prints what was
// compared; exits with 1 at the first difference.
//
//   rollback_scripts MODEL SCRIPTS [SEED]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "engine/llama/backend.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/llama_model.h"

namespace outrider {
namespace {

constexpr int kSequences = 5;
constexpr Pos kContext = 128;
constexpr int kActions = 12;  // per script
constexpr int kMaxDraft = 12;

std::string where = "start";  // the script that is running, for error messages

[[noreturn]] void Fail(const std::string& what) {
  fmt::print(stderr, "{}: {}\n", where, what);
  std::exit(1);
}

std::unique_ptr<LlamaEngine> MakeEngine(const std::shared_ptr<LlamaModel>& model, bool device_snapshots) {
  ContextOptions options;
  options.n_sequences = kSequences;
  options.context_tokens = kSequences * kContext;
  options.batch = 128;
  options.micro_batch = 64;
  options.max_outputs = kSequences * (kMaxDraft + 1);
  options.device_snapshots = device_snapshots;
  auto engine = LlamaEngine::Create(model, options);
  if (!engine.ok()) Fail(engine.status().message());
  return std::move(*engine);
}

// Positions of the attention cells in a saved memory, as libllama writes them.
std::vector<Pos> CellPositions(std::span<const uint8_t> state) {
  size_t at = 8;  // a magic number and the sequence
  const auto read = [&] {
    int32_t value = 0;
    if (at + sizeof(value) > state.size()) Fail("a saved memory is too short");
    std::memcpy(&value, state.data() + at, sizeof(value));
    at += sizeof(value);
    return value;
  };
  for (int streams = read(); streams > 0; --streams) {
    std::vector<Pos> positions(static_cast<size_t>(read()));
    for (Pos& position : positions) {
      position = read();
      for (int sequences = read(); sequences > 0; --sequences) read();
    }
    if (!positions.empty()) return positions;
  }
  return {};
}

// Runs one script on an engine and compares it with a second engine that decodes without rollbacks.
class Script {
 public:
  Script(LlamaEngine& engine, LlamaEngine& straight, bool has_cells, uint64_t seed)
      : engine_(engine),
        straight_(straight),
        has_cells_(has_cells),
        random_(seed),
        committed_(kSequences),
        straight_known_(kSequences) {
    for (SeqId seq = 0; seq < kSequences; ++seq) {
      engine_.TruncateTo(seq, 0);
      straight_.TruncateTo(seq, 0);
    }
  }

  struct Counts {
    int rows = 0, drafted = 0, rejected = 0, replayed = 0, memories = 0, duplicates = 0;
  };

  Counts Run() {
    for (SeqId seq = 0; seq < kSequences; ++seq) BeginRequest(seq);
    for (int action = 0; action < kActions; ++action) {
      const SeqId seq = Below(kSequences);
      switch (Below(8)) {
        case 0:
          BeginRequest(seq);
          break;
        case 1:
          SaveAndRestore(seq);
          break;
        default:
          Step();
      }
    }
    for (SeqId seq = 0; seq < kSequences; ++seq) CompareMemory(seq);
    return counts_;
  }

 private:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }
  Token AnyToken() { return Below(engine_.info().n_vocab); }
  std::vector<Token>& Committed(SeqId seq) { return committed_[static_cast<size_t>(seq)]; }

  // Ends the request in `seq`, wherever it is, and begins another one that shares some of its tokens.
  void BeginRequest(SeqId seq) {
    std::vector<Token>& tokens = Committed(seq);
    const Pos shared = std::min(Below(static_cast<int>(tokens.size()) + 1), kContext / 2);
    tokens.resize(static_cast<size_t>(shared));
    for (int more = 1 + Below(40); more > 0; --more) tokens.push_back(AnyToken());
    engine_.TruncateTo(seq, shared);
    while (engine_.Length(seq) < static_cast<Pos>(tokens.size()) - 1) {
      const Pos from = engine_.Length(seq);
      const Pos to = std::min<Pos>(from + 1 + Below(40), static_cast<Pos>(tokens.size()) - 1);
      Batch batch;
      for (Pos pos = from; pos < to; ++pos) batch.Add({tokens[static_cast<size_t>(pos)], pos, seq, false});
      Decode(batch);
      engine_.Remember(seq);
    }
  }

  void SaveAndRestore(SeqId seq) {
    auto state = engine_.SaveSequence(seq);
    if (!state.ok()) Fail(state.status().message());
    const Pos length = engine_.Length(seq);
    if (length == 0) return;
    Status status = engine_.RestoreSequence(seq, *state, length);
    if (!status.ok()) Fail(status.message());
  }

  struct DraftedSequence {
    SeqId seq;
    int first_row;  // the first row with logits
    std::vector<Token> draft;
    int right;
  };

  // One step of some of the sequences, each with a draft whose first `right` tokens are accepted.
  void Step() {
    std::vector<DraftedSequence> sequences;
    Batch batch;
    const int common_width = Below(2) == 0 ? 0 : 2 + Below(kMaxDraft);  // rows of every sequence; 0 = different numbers
    for (SeqId seq = 0; seq < kSequences; ++seq) {
      std::vector<Token>& tokens = Committed(seq);
      const auto size = static_cast<Pos>(tokens.size());
      if (Below(4) == 0 || size + kMaxDraft + 2 > kContext) continue;
      if (size - engine_.Length(seq) > 30) CatchUp(seq);
      DraftedSequence drafted{seq, 0, {}, 0};
      int length = Below(3) == 0 ? 0 : 1 + Below(kMaxDraft);
      if (common_width > 0) length = std::max(0, common_width - (size - engine_.Length(seq)));
      for (int i = 0; i < length; ++i) drafted.draft.push_back(AnyToken());
      drafted.right = Below(length + 1);
      Pos pos = engine_.Length(seq);
      for (; pos < size; ++pos) {
        const int row = batch.Add({tokens[static_cast<size_t>(pos)], pos, seq, pos + 1 == size});
        if (pos + 1 == size) drafted.first_row = row;
      }
      for (const Token token : drafted.draft) batch.Add({token, pos++, seq, true});
      sequences.push_back(std::move(drafted));
    }
    if (sequences.empty()) return;
    std::vector<SequenceRows> step;
    for (const BatchRow& row : batch.rows()) {
      if (step.empty() || step.back().seq != row.seq) step.push_back({row.seq, 0});
      ++step.back().rows;
    }
    StepLayout layout;
    engine_.LayOut(step, &layout);
    for (const DraftedSequence& drafted : sequences) {
      if (static_cast<int>(drafted.draft.size()) > layout.free_rollback) engine_.SaveState(drafted.seq);
    }
    Decode(batch);
    for (const DraftedSequence& drafted : sequences) Commit(drafted);
  }

  void CatchUp(SeqId seq) {
    Batch batch;
    const std::vector<Token>& tokens = Committed(seq);
    for (Pos pos = engine_.Length(seq); pos + 1 < static_cast<Pos>(tokens.size()); ++pos)
      batch.Add({tokens[static_cast<size_t>(pos)], pos, seq, false});
    Decode(batch);
  }

  void Commit(const DraftedSequence& drafted) {
    std::vector<Token>& tokens = Committed(drafted.seq);
    const auto before = static_cast<Pos>(tokens.size());
    tokens.insert(tokens.end(), drafted.draft.begin(), drafted.draft.begin() + drafted.right);
    std::vector<std::vector<float>> logits;
    for (int i = 0; i <= drafted.right; ++i) {
      const std::span<const float> row = engine_.Logits(drafted.first_row + i);
      logits.emplace_back(row.begin(), row.end());
    }
    CompareRows(drafted.seq, before - 1, logits);
    const auto right = static_cast<Pos>(tokens.size());
    const Pos kept = engine_.TruncateTo(drafted.seq, right);
    if (kept != engine_.Length(drafted.seq)) Fail("TruncateTo and Length differ");
    if (kept > right) Fail("more was kept than asked for");
    counts_.drafted += static_cast<int>(drafted.draft.size());
    counts_.rejected += static_cast<int>(drafted.draft.size()) - drafted.right;
    counts_.replayed += right - kept;
    tokens.push_back(AnyToken());
    if (Below(4) == 0) CompareMemory(drafted.seq);
  }

  void Decode(const Batch& batch) {
    if (batch.empty()) return;
    if (Status status = engine_.Decode(batch); !status.ok()) Fail(status.message());
  }

  // Decodes the first `length` committed tokens of `seq` in the other engine, with logits from position `logits_from`
  // on. This engine never rolls back: if its memory has other tokens, it is cleared first.
  void DecodeStraight(SeqId seq, Pos length, Pos logits_from) {
    const std::vector<Token>& tokens = Committed(seq);
    std::vector<Token>& known = straight_known_[static_cast<size_t>(seq)];
    const auto max_known = static_cast<size_t>(std::min(length, logits_from));
    if (known.size() > max_known || !std::equal(known.begin(), known.end(), tokens.begin())) {
      straight_.TruncateTo(seq, 0);
      known.clear();
    }
    while (static_cast<Pos>(known.size()) < length) {
      Batch batch;
      const auto from = static_cast<Pos>(known.size());
      const bool wanted = from >= logits_from;
      const Pos end = wanted ? length : std::min({length, logits_from, from + 64});
      for (Pos pos = from; pos < end; ++pos) batch.Add({tokens[static_cast<size_t>(pos)], pos, seq, wanted});
      if (Status status = straight_.Decode(batch); !status.ok()) Fail(status.message());
      known.assign(tokens.begin(), tokens.begin() + end);
    }
  }

  void CompareRows(SeqId seq, Pos first, const std::vector<std::vector<float>>& logits) {
    DecodeStraight(seq, first + static_cast<Pos>(logits.size()), first);
    for (size_t i = 0; i < logits.size(); ++i) {
      const std::span<const float> expected = straight_.Logits(static_cast<int>(i));
      ++counts_.rows;
      if (std::equal(expected.begin(), expected.end(), logits[i].begin())) continue;
      Fail(fmt::format("sequence {}: logits at position {} are not those of plain decoding", seq,
                       first + static_cast<Pos>(i)));
    }
  }

  void CompareMemory(SeqId seq) {
    // libllama clears a cell by multiplying it with 0, so a sequence begins with 0 or -0, depending on what the cell
    // held before. Convolutions still have this difference in the first few tokens.
    constexpr Pos kMinLength = 8;
    const Pos length = engine_.Length(seq);
    if (length < kMinLength) return;
    DecodeStraight(seq, length, length);
    auto ours = engine_.SaveSequence(seq), expected = straight_.SaveSequence(seq);
    if (!ours.ok() || !expected.ok()) Fail("a memory could not be read");
    ++counts_.memories;
    if (has_cells_) {
      const std::vector<Pos> positions = CellPositions(*ours);
      const std::set<Pos> distinct(positions.begin(), positions.end());
      counts_.duplicates += static_cast<int>(positions.size() - distinct.size());
      if (static_cast<Pos>(distinct.size()) != length)
        Fail(fmt::format("sequence {}: {} positions in memory instead of {}", seq, distinct.size(), length));
    }
    if (*ours == *expected) return;
    const auto at = std::mismatch(ours->begin(), ours->end(), expected->begin(), expected->end()).first;
    Fail(fmt::format("sequence {}: its memory of {} tokens is not that of plain decoding: byte {} of {} differs", seq,
                     length, at - ours->begin(), ours->size()));
  }

  LlamaEngine& engine_;
  LlamaEngine& straight_;
  const bool has_cells_;
  std::mt19937_64 random_;
  std::vector<std::vector<Token>> committed_, straight_known_;
  Counts counts_;
};

void RunScripts(const std::shared_ptr<LlamaModel>& model, bool device_snapshots, int scripts, uint64_t seed) {
  auto engine = MakeEngine(model, device_snapshots), straight = MakeEngine(model, device_snapshots);
  if (!engine->info().exactness.empty()) Fail("not exact: " + engine->info().exactness);
  const bool has_cells = !llama_model_is_recurrent(model->handle());
  Script::Counts all;
  for (int i = 0; i < scripts; ++i) {
    where =
        fmt::format("seed {}, {}", seed + static_cast<uint64_t>(i), device_snapshots ? "device snapshots" : "replay");
    const Script::Counts counts = Script(*engine, *straight, has_cells, seed + static_cast<uint64_t>(i)).Run();
    all.rows += counts.rows;
    all.drafted += counts.drafted;
    all.rejected += counts.rejected;
    all.replayed += counts.replayed;
    all.memories += counts.memories;
    all.duplicates += counts.duplicates;
  }
  fmt::print(
      "{} device snapshots, {} scripts: {} of {} draft tokens rejected, {} replayed; {} rows and {} memories equal, "
      "{} duplicate positions\n",
      engine->info().device_snapshots, scripts, all.rejected, all.drafted, all.replayed, all.rows, all.memories,
      all.duplicates);
  if (all.duplicates > 0) std::exit(1);
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  using namespace outrider;
  if (argc < 3) Fail("usage: rollback_scripts MODEL SCRIPTS [SEED]");
  SetLogLevel(LogLevel::kError);
  if (Status status = InitBackend(""); !status.ok()) Fail(status.message());
  ModelOptions options;
  options.path = argv[1];
  auto model = LlamaModel::Load(options);
  if (!model.ok()) Fail(model.status().message());
  const int scripts = std::atoi(argv[2]);
  const uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const bool snapshots = MakeEngine(*model, true)->info().device_snapshots > 0;
  if (snapshots) RunScripts(*model, true, scripts / 2, seed);
  RunScripts(*model, false, snapshots ? scripts - scripts / 2 : scripts, seed);
  return 0;
}
