#include "apps/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "apps/version.h"
#include "base/log.h"
#include "engine/llama/backend.h"
#include "scheduler/scheduler.h"

namespace outrider {
namespace {

constexpr std::array kTexts = {
    "The lighthouse keeper climbed the stairs every evening at dusk, lit the lamp, and wrote the weather into the log. "
    "One night in November the storm was so strong that",
    "def area(width, height):\n    if width < 0 or height < 0:\n        raise ValueError(\"lengths must not be "
    "negative\")\n    return width * height\n\ndef volume(width, height, depth):\n    if width < 0",
    "[{\"name\": \"oak\", \"kind\": \"tree\"}, {\"name\": \"fir\", \"kind\": \"tree\"}, {\"name\": \"elm\", \"kind\": "
    "\"tree\"}, {\"name\":",
    "Question: A train leaves at nine and travels three hours at eighty kilometres per hour. How far does it get? "
    "Answer, step by step:",
};
constexpr int kAnswerTokens = 96;
constexpr int kLongTextTokens = 320;  // past 256, where attention kernels change

std::vector<Token> LongText(const Tokenizer& tokenizer) {
  std::vector<Token> tokens;
  while (tokens.size() < kLongTextTokens) {
    for (const char* text : kTexts) {
      const auto more = tokenizer.Tokenize(text, tokens.empty(), SpecialTokens::kAsText);
      tokens.insert(tokens.end(), more.begin(), more.end());
    }
  }
  tokens.resize(kLongTextTokens);
  return tokens;
}

void ForgetAll(Engine& engine) {
  for (SeqId seq = 0; seq < engine.info().n_sequences; ++seq) engine.TruncateTo(seq, 0);
}

// One line of the table.
void Print(std::string_view what, bool holds, std::string_view detail) {
  fmt::print("{:<44} {:<6} {}\n", what, holds ? "exact" : "DIFFERS", detail);
  std::fflush(stdout);
}

// Decodes the same tokens in different shapes and compares logits bit by bit with decoding one row at a time.
class LogitsCheck {
 public:
  LogitsCheck(Engine& engine, const Tokenizer& tokenizer) : engine_(engine), tokens_(LongText(tokenizer)) {
    tokens_.resize(std::min(tokens_.size(), static_cast<size_t>(engine.info().sequence_length) - 1));
  }

  // Logits of the last kRows rows, each decoded alone.
  Status Prepare() {
    if (Status status = ReadPrompt(0, kWhole); !status.ok()) return status;
    for (size_t i = Size() - kRows; i < Size(); ++i) {
      if (Status status = DecodeUpTo(i + 1, 0); !status.ok()) return status;
      const auto logits = engine_.Logits(0);
      alone_.emplace_back(logits.begin(), logits.end());
    }
    return {};
  }

  // The last rows in batches of `width`, after the same prompt.
  Result<bool> Width(int width) {
    if (Status status = ReadPrompt(0, kWhole); !status.ok()) return status;
    return CompareTail(0, width, 0);
  }

  // The prompt in slices of `slice`, then row by row.
  Result<bool> Slice(int slice) {
    if (Status status = ReadPrompt(0, slice); !status.ok()) return status;
    return CompareTail(0, 1, 0);
  }

  // The same in the last sequence, with rows of the others in each batch.
  Result<bool> Neighbours() {
    const SeqId last = engine_.info().n_sequences - 1;
    if (Status status = ReadPrompt(last, kWhole); !status.ok()) return status;
    return CompareTail(last, 1, last);
  }

  // Wrong tokens decoded and taken back after each row.
  Result<bool> Rollback() {
    constexpr size_t kMostAgain = 4;  // rows that a rollback took along
    if (Status status = ReadPrompt(0, kWhole); !status.ok()) return status;
    for (size_t i = Size() - kRows; i < Size(); ++i) {
      if (i - Length() > kMostAgain) {
        if (Status status = DecodeUpTo(i, 0); !status.ok()) return status;
      }
      const size_t first = Length();
      const Pos most =
          std::min({4, engine_.info().max_batch - static_cast<int>(i - first) - 1, engine_.info().max_outputs - 1,
                    engine_.info().sequence_length - static_cast<Pos>(i) - 1});
      engine_.SaveState(0);
      if (Status status = DecodeUpTo(i + 1, most); !status.ok()) return status;
      if (!Same(engine_.Logits(static_cast<int>(i - first)), i)) return false;
      engine_.TruncateTo(0, static_cast<Pos>(i) + 1);
    }
    return true;
  }

 private:
  static constexpr size_t kRows = 33;
  static constexpr int kWhole = 1 << 20;  // a slice that takes all a batch takes

  size_t Size() const { return tokens_.size(); }
  size_t Length() const { return static_cast<size_t>(engine_.Length(0)); }

  // The tokens of sequence 0 that are not in memory, up to `end`, and `wrong` ones after them.
  Status DecodeUpTo(size_t end, Pos wrong) {
    batch_.Clear();
    for (size_t at = Length(); at < end; ++at) {
      batch_.Add({tokens_[at], static_cast<Pos>(at), 0, at + 1 == end});
    }
    for (Pos i = 0; i < wrong; ++i) {
      batch_.Add({tokens_[static_cast<size_t>(i) + 1], static_cast<Pos>(end) + i, 0, true});
    }
    return engine_.Decode(batch_);
  }

  // All but the last rows, in slices, into memory that holds nothing else.
  Status ReadPrompt(SeqId seq, int slice) {
    ForgetAll(engine_);
    const auto most = static_cast<size_t>(std::min(slice, engine_.info().max_batch));
    for (size_t at = 0, end = Size() - kRows; at < end;) {
      batch_.Clear();
      for (const size_t stop = std::min(end, at + most); at < stop; ++at) {
        batch_.Add({tokens_[at], static_cast<Pos>(at), seq, false});
      }
      if (Status status = engine_.Decode(batch_); !status.ok()) return status;
    }
    return {};
  }

  // Decodes the last rows of `seq`, `width` at a time, beside one row of each of the first `neighbours` sequences.
  Result<bool> CompareTail(SeqId seq, int width, SeqId neighbours) {
    for (size_t at = Size() - kRows; at < Size();) {
      batch_.Clear();
      for (SeqId other = 0; other < neighbours; ++other) {
        batch_.Add({tokens_[at % 7], engine_.Length(other), other, true});
      }
      const size_t first = at;
      const int first_row = batch_.size();
      for (const size_t stop = std::min(Size(), at + static_cast<size_t>(width)); at < stop; ++at) {
        batch_.Add({tokens_[at], static_cast<Pos>(at), seq, true});
      }
      if (Status status = engine_.Decode(batch_); !status.ok()) return status;
      for (size_t i = first; i < at; ++i) {
        if (!Same(engine_.Logits(first_row + static_cast<int>(i - first)), i)) return false;
      }
    }
    return true;
  }

  bool Same(std::span<const float> logits, size_t token) const {
    const std::vector<float>& expected = alone_[token - (Size() - kRows)];
    return std::memcmp(logits.data(), expected.data(), expected.size() * sizeof(float)) == 0;
  }

  Engine& engine_;
  std::vector<Token> tokens_;
  std::vector<std::vector<float>> alone_;
  Batch batch_;
};

// The texts' continuations, all at once; token by token.
struct Answers {
  std::vector<std::vector<Token>> tokens;
  int drafted = 0, accepted = 0;
};

Result<Answers> Generate(Engine& engine, const Tokenizer& tokenizer, FilterFactory& filters,
                         std::unique_ptr<Speculator> speculator, float temperature) {
  Scheduler scheduler(engine, tokenizer, filters, {}, std::move(speculator));
  std::vector<std::shared_ptr<Generation>> generations;
  Answers answers;
  for (const char* text : kTexts) {
    GenerationRequest request;
    request.prompt = tokenizer.Tokenize(text, /*add_bos=*/true, SpecialTokens::kAsText);
    request.sampling.temperature = temperature;
    request.sampling.seed = 17;
    request.ignore_eos = true;
    request.reuse_prefix = false;
    request.max_tokens =
        std::min(kAnswerTokens, engine.info().sequence_length - static_cast<Pos>(request.prompt.size()));
    auto generation = scheduler.Submit(std::move(request));
    if (!generation.ok()) return generation.status();
    generations.push_back(*generation);
  }
  while (scheduler.Step()) {
  }
  for (auto& generation : generations) {
    auto& tokens = answers.tokens.emplace_back();
    while (auto chunk = generation->Wait(std::chrono::milliseconds(0))) {
      for (const GeneratedToken& token : chunk->tokens) tokens.push_back(token.token);
      answers.drafted += chunk->completion ? chunk->completion->timings.drafted_tokens : 0;
      answers.accepted += chunk->completion ? chunk->completion->timings.accepted_tokens : 0;
      if (chunk->completion && !chunk->completion->error.ok()) return chunk->completion->error;
      if (chunk->completion) break;
    }
  }
  return answers;
}

std::string FirstDifference(const Answers& plain, const Answers& drafted) {
  for (size_t i = 0; i < plain.tokens.size(); ++i) {
    if (i >= drafted.tokens.size()) return fmt::format("text {} was not answered", i + 1);
    const auto& a = plain.tokens[i];
    const auto& b = drafted.tokens[i];
    const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
    if (a.size() != b.size() || at != static_cast<std::ptrdiff_t>(a.size())) {
      return fmt::format("text {} differs from token {} on", i + 1, at);
    }
  }
  return "";
}

// Every drafter by itself and all together, each draft verified whether it pays or not.
Status CheckTexts(const ServeOptions& options, Target& target, bool* kept) {
  Engine& engine = target.engine();
  const LlamaModel& model = *target.model();
  LlamaFilterFactory filters(target.model(), engine.info().sequence_length);
  auto choices = ChooseDrafters(options.speculation);
  if (!choices.ok()) return choices.status();
  std::vector<std::string> names;
  for (const DrafterChoice& choice : *choices) names.push_back(choice.name);
  for (const float temperature : {0.0f, 0.8f}) {
    const Result<Answers> plain = Generate(engine, model.tokenizer(), filters, nullptr, temperature);
    if (!plain.ok()) return plain.status();
    const auto check = [&](const std::string& name, SpeculationSettings settings) -> Status {
      auto speculation = Speculation::Create(std::move(settings), target);
      if (!speculation.ok()) return speculation.status();
      const Result<Answers> drafted =
          Generate(engine, model.tokenizer(), filters, (*speculation)->TakeSpeculator(), temperature);
      if (!drafted.ok()) return drafted.status();
      const std::string difference = FirstDifference(*plain, *drafted);
      std::string detail = difference;
      if (difference.empty()) {
        detail = drafted->drafted == 0
                     ? "nothing was drafted: this proves nothing"
                     : fmt::format("{} of {} draft tokens right", drafted->accepted, drafted->drafted);
      }
      Print(fmt::format("text with {}, temperature {:.1f}", name, temperature), difference.empty(), detail);
      *kept = *kept && difference.empty();
      return {};
    };
    for (const std::string& name : names) {
      SpeculationSettings settings = options.speculation;
      settings.remember = false;  // what is learned from these texts is nobody's business
      settings.drafters = {name};
      settings.policy.always = true;
      if (name != "model") settings.draft_model.path.clear();
      if (name != "ngram-cache") settings.lookup_cache_static = settings.lookup_cache_dynamic = "";
      if (Status status = check(name, std::move(settings)); !status.ok()) return status;
    }
    if (names.size() > 1) {
      SpeculationSettings settings = options.speculation;
      settings.remember = false;
      if (Status status = check("all, when it pays", std::move(settings)); !status.ok()) return status;
    }
  }
  return {};
}

Status CheckLogits(Target& target, bool* kept) {
  Engine& engine = target.engine();
  LogitsCheck logits(engine, target.model()->tokenizer());
  if (Status status = logits.Prepare(); !status.ok()) return status;
  const auto report = [&](const std::string& what, Result<bool> same) -> Status {
    if (!same.ok()) return same.status();
    Print(what, *same, "");
    *kept = *kept && *same;
    return {};
  };
  const EngineInfo& info = engine.info();
  for (const int width : {2, 3, 4, 5, 8, 16, 32}) {
    if (width > std::min(info.max_outputs, info.max_batch)) continue;
    if (Status status = report(fmt::format("logits, {} rows at once", width), logits.Width(width)); !status.ok()) {
      return status;
    }
  }
  for (const int slice : {1, 7, 64, 200}) {
    if (Status status = report(fmt::format("logits, prompt in slices of {}", slice), logits.Slice(slice));
        !status.ok()) {
      return status;
    }
  }
  if (info.n_sequences > 1) {
    if (Status status = report("logits, beside other sequences", logits.Neighbours()); !status.ok()) return status;
  }
  if (info.rollback != Rollback::kNone) {
    if (Status status = report("logits, after wrong drafts", logits.Rollback()); !status.ok()) return status;
  }
  ForgetAll(engine);
  return {};
}

// Everything about the way the target decodes now; what is found is kept for the next start.
Status CheckTarget(const ServeOptions& options, Target& target, bool* kept) {
  *kept = true;
  if (Status status = CheckLogits(target, kept); !status.ok()) return status;
  if (Status status = CheckTexts(options, target, kept); !status.ok()) return status;
  target.KeepVerdict(*kept);
  return {};
}

}  // namespace

Status Check(ServeOptions options, bool* kept) {
  SetLogLevel(options.verbose ? LogLevel::kDebug : LogLevel::kError);
  if (!options.replica.empty()) {
    return InvalidArgument(
        "outrider check is about one copy of the model; outrider serve compares them when it starts");
  }
  if (Status status = InitBackend(options.numa); !status.ok()) return status;
  auto loaded = Target::Load(options.model, options.context, /*learn=*/false);
  if (!loaded.ok()) return loaded.status();
  Target& target = **loaded;
  fmt::print("{}\n{}, {}{}\n\n", VersionLine(), options.model.path, target.model()->Description(),
             target.padded() ? ", every step padded to one shape" : "");

  if (Status status = CheckTarget(options, target, kept); !status.ok()) return status;
  const bool plain_differs = !*kept && !target.padded();
  if (plain_differs && options.context.exactness == Exactness::kAuto && target.CanPad()) {
    fmt::print("\nOnce more, with every step padded to one shape:\n\n");
    target.Pad();
    if (Status status = CheckTarget(options, target, kept); !status.ok()) return status;
  }

  const std::string caveat = target.unpadded().info().exactness;
  const std::string why = caveat.empty() ? "though the settings should be enough; please report this table" : caveat;
  if (*kept && plain_differs) {
    fmt::print("\nEvery promise holds with padded steps: --exact pad, or auto with these flags from now on.\n");
    fmt::print("Not without them: {}.\n", why);
  } else if (*kept) {
    fmt::print("\nEvery promise holds: the same request gives the same text.\n");
  } else {
    fmt::print("\nNot exact: {}.\n", why);
  }
  return {};
}

}  // namespace outrider
