#include "apps/states.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <utility>

#include "apps/states_file.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/llama/backend.h"
#include "engine/llama/llama_engine.h"

namespace outrider {
namespace {

constexpr int kRows = 512;  // decoded at once; all of them give logits, which takes this times the vocabulary

struct Text {
  int line;
  std::vector<Token> tokens;
};

Result<std::vector<Text>> ReadTexts(const std::string& path, int vocabulary) {
  std::ifstream file(path);
  if (!file) return InvalidArgument("cannot read " + path);
  std::vector<Text> texts;
  std::string line;
  for (int number = 0; std::getline(file, line); ++number) {
    auto tokens = ParseTokenLine(line, vocabulary);
    if (!tokens.ok())
      return InvalidArgument(fmt::format("{}, line {} {}", path, number + 1, tokens.status().message()));
    texts.push_back({number, std::move(*tokens)});
  }
  if (texts.empty()) return InvalidArgument(path + " has no lines");
  return texts;
}

// Encodes rows 0 to `rows` - 1 of the last batch, on several threads: a row has the whole vocabulary to look through.
std::string Encode(Engine& engine, const StatesHead& head, const Text& text, int begin, int rows) {
  const size_t size = StatesRecordBytes(head);
  std::string bytes(static_cast<size_t>(rows) * size, '\0');
  std::vector<std::span<const float>> logits, states;
  for (int row = 0; row < rows; ++row) {
    logits.push_back(engine.Logits(row));
    states.push_back(head.layers.empty() ? std::span<const float>() : engine.Hidden(row));
  }
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, rows);
  const auto encode = [&](int first) {
    for (auto row = static_cast<size_t>(first); row < static_cast<size_t>(rows); row += static_cast<size_t>(threads)) {
      EncodeStatesRecord(head, text.line, text.tokens[static_cast<size_t>(begin) + row], logits[row], states[row],
                         std::span(bytes).subspan(row * size, size));
    }
  };
  std::vector<std::jthread> others;
  for (int first = 1; first < threads; ++first) others.emplace_back(encode, first);
  encode(0);
  others.clear();  // joins
  return bytes;
}

Status WriteText(Engine& engine, const StatesHead& head, const Text& text, File& file, bool* written) {
  engine.TruncateTo(0, 0);
  const auto length = static_cast<int>(text.tokens.size());
  Batch batch;
  for (int begin = 0; begin < length; begin += kRows) {
    const int end = std::min(begin + kRows, length);
    batch.Clear();
    for (int pos = begin; pos < end; ++pos)
      batch.Add({text.tokens[static_cast<size_t>(pos)], pos, 0, true, !head.layers.empty()});
    if (Status status = engine.Decode(batch); !status.ok()) return status;
    *written = file.Write(Encode(engine, head, text, begin, end - begin));
    if (!*written) return {};
  }
  return {};
}

}  // namespace

void AddStatesFlags(Flags& flags, StatesOptions& o) {
  flags.Group("States");
  flags.Add("-m,--model", o.model, "GGUF file of the model");
  flags.Add("--in", o.in, "file with lines {\"tokens\": [1, 2, …]}");
  flags.Add("--out", o.out, "file to write; src/apps/states_file.h describes it");
  flags
      .Add("--layers", o.layers, "layers whose inputs are written, comma-separated; default: none, only likely tokens")
      ->delimiter(',');
  flags.Add("--top", o.top, "likeliest next tokens to write for each token")->check(CLI::Range(1, 4096));
  flags.Add("-t,--threads", o.threads, "threads; 0 = one per physical core")->check(CLI::Range(0, 4096));
  flags.Add("-ngl,--gpu-layers,--n-gpu-layers", o.gpu_layers, "layers kept on the devices; -1 = all layers")
      ->check(CLI::Range(-1, 1 << 20));
}

Status ExportStates(const StatesOptions& options) {
  SetLogLevel(LogLevel::kWarning);
  if (options.model.empty() || options.in.empty() || options.out.empty())
    return InvalidArgument("needs -m MODEL.gguf --in TEXTS.jsonl --out FILE");
  if (Status status = InitBackend(""); !status.ok()) return status;
  ModelOptions model;
  model.path = options.model;
  model.gpu_layers = options.gpu_layers;
  model.exactness = Exactness::kOff;
  auto loaded = LlamaModel::Load(model);
  if (!loaded.ok()) return loaded.status();

  StatesHead head;
  head.layers = options.layers;
  head.width = (*loaded)->EmbeddingSize();
  head.vocabulary = (*loaded)->tokenizer().vocabulary_size();
  head.top = std::min(options.top, head.vocabulary);
  const auto texts = ReadTexts(options.in, head.vocabulary);
  if (!texts.ok()) return texts.status();
  const auto longest = std::max_element(texts->begin(), texts->end(),
                                        [](const Text& a, const Text& b) { return a.tokens.size() < b.tokens.size(); });
  ContextOptions context;
  context.n_sequences = 1;
  context.context_tokens = std::max(kRows, static_cast<int>(longest->tokens.size()));
  context.batch = context.micro_batch = context.max_outputs = kRows;
  context.threads = options.threads;
  context.exactness = Exactness::kOff;
  auto engine = LlamaEngine::Create(*loaded, context);
  if (!engine.ok()) return engine.status();
  if (!head.layers.empty()) {
    if (Status status = (*engine)->ProvideHidden(head.layers); !status.ok()) return status;
  }
  Status failure;
  const Status status = ReplaceFile(options.out, [&](File& file) {
    bool written = file.Write(EncodeStatesHead(head));
    for (size_t i = 0; i < texts->size() && written && failure.ok(); ++i) {
      failure = WriteText(**engine, head, (*texts)[i], file, &written);
    }
    return written && failure.ok();
  });
  return failure.ok() ? status : failure;
}

}  // namespace outrider
