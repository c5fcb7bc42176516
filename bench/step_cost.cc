// What a step of k rows costs, T(k), at some depth of context, with ggml's kernels and with ours: each loaded in turn,
// twice, the fastest of many steps.
//
//   bench/step_cost MODEL.gguf [--cells 128]… [--threads 2] [--seconds 4] [--cache-type f16]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "engine/llama/llama_engine.h"

namespace {

using namespace outrider;

const std::vector<int> kWidths = {1, 2, 3, 4, 5, 6, 8, 12, 16};
constexpr int kPromptSlice = 256;
constexpr Token kFiller = 100;

struct Options {
  std::string model;
  std::vector<int> cells;
  int threads = 2;
  double seconds = 4;
  std::string cache_type;  // "" = each its default
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename T>
T OrExit(Result<T> result) {
  if (result.ok()) return std::move(*result);
  fmt::print(stderr, "{}\n", result.status().message());
  std::exit(2);
}

void Decode(Engine& engine, int rows, bool all_logits) {
  Batch batch;
  const Pos begin = engine.Length(0);
  for (int i = 0; i < rows; ++i) batch.Add({kFiller + begin + i, begin + i, 0, all_logits || i == rows - 1});
  if (const Status status = engine.Decode(batch); !status.ok()) {
    fmt::print(stderr, "{}\n", status.message());
    std::exit(2);
  }
}

struct Costs {
  std::map<std::pair<int, int>, double> step;  // by cells and rows
  double prompt = 1e9;                         // seconds for a slice
  double load = 1e9;
  std::string kernels;
};

void Measure(const Options& options, Kernels kernels, Costs& costs) {
  ModelOptions model_options;
  model_options.path = options.model;
  model_options.kernels = kernels;
  const double start = Now();
  const auto model = OrExit(LlamaModel::Load(model_options));
  costs.load = std::min(costs.load, Now() - start);
  costs.kernels = model->kernels();
  ContextOptions context;
  context.n_sequences = 1;
  context.context_tokens = *std::max_element(options.cells.begin(), options.cells.end()) + kPromptSlice + 64;
  context.threads = options.threads;
  context.cache_type_k = context.cache_type_v = options.cache_type;
  const auto engine = OrExit(LlamaEngine::Create(model, context));
  Decode(*engine, kPromptSlice, false);
  for (int i = 0; i < 3; ++i) {
    engine->TruncateTo(0, 0);
    const double before = Now();
    Decode(*engine, kPromptSlice, false);
    costs.prompt = std::min(costs.prompt, Now() - before);
  }
  for (int cells : options.cells) {
    engine->TruncateTo(0, 0);
    while (engine->Length(0) < cells) Decode(*engine, std::min<int>(kPromptSlice, cells - engine->Length(0)), false);
    const double end = Now() + options.seconds;
    while (Now() < end) {
      for (int rows : kWidths) {
        const double before = Now();
        Decode(*engine, rows, true);
        double& fastest = costs.step.try_emplace({cells, rows}, 1e9).first->second;
        fastest = std::min(fastest, Now() - before);
        if (engine->TruncateTo(0, cells) == cells) continue;
        fmt::print(stderr, "this model's memory cannot take steps back\n");
        std::exit(2);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (argc > 1) options.model = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--cells") {
      options.cells.push_back(std::stoi(value));
    } else if (flag == "--threads") {
      options.threads = std::stoi(value);
    } else if (flag == "--seconds") {
      options.seconds = std::stod(value);
    } else if (flag == "--cache-type") {
      options.cache_type = value;
    } else {
      fmt::print(stderr, "unknown flag '{}'\n", flag);
      return 2;
    }
  }
  if (options.cells.empty()) options.cells = {128, 1024};
  Costs ggml, ours;
  for (int round = 0; round < 2; ++round) {
    Measure(options, Kernels::kGgml, ggml);
    Measure(options, Kernels::kOutrider, ours);
  }
  fmt::print("{}, {} threads; {}\n", options.model, options.threads, ours.kernels);
  fmt::print(
      "load {:.2f} s with ggml's kernels, {:.2f} s with ours; {} rows of a prompt {:.0f} ms and {:.0f} ms ({:.2f})\n",
      ggml.load, ours.load, kPromptSlice, 1e3 * ggml.prompt, 1e3 * ours.prompt, ggml.prompt / ours.prompt);
  for (int cells : options.cells) {
    fmt::print("\n| T(k) at {} cells, k = |", cells);
    for (int rows : kWidths) fmt::print(" {} |", rows);
    fmt::print("\n|---|");
    for (size_t i = 0; i < kWidths.size(); ++i) fmt::print("---|");
    for (const auto& [name, costs] : {std::pair<std::string, const Costs&>{"ggml", ggml}, {"ours", ours}}) {
      fmt::print("\n| {}, ms (over T(1)) |", name);
      for (int rows : kWidths) {
        const double seconds = costs.step.at({cells, rows});
        fmt::print(" {:.1f} ({:.2f}) |", 1e3 * seconds, seconds / costs.step.at({cells, 1}));
      }
    }
    fmt::print("\n| ggml / ours |");
    for (int rows : kWidths) fmt::print(" {:.2f} |", ggml.step.at({cells, rows}) / ours.step.at({cells, rows}));
    fmt::print("\n");
  }
}
