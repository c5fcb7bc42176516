// Outrider as a library: load a model, ask it something, print the answer as it comes.
//
//   build/release/bin/hello models/smollm2-draft-16m.gguf "Once upon a time"
#include <cstdio>

#include "engine/llama/llama_engine.h"
#include "engine/llama/llama_filters.h"
#include "scheduler/scheduler.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: hello MODEL.gguf PROMPT\n");
    return 2;
  }
  outrider::ModelOptions model_options;
  model_options.path = argv[1];
  auto model = outrider::LlamaModel::Load(model_options);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().message().c_str());
    return 2;
  }
  auto engine = outrider::LlamaEngine::Create(*model, outrider::ContextOptions{});
  if (!engine.ok()) {
    std::fprintf(stderr, "%s\n", engine.status().message().c_str());
    return 2;
  }
  const outrider::Tokenizer& tokenizer = (*model)->tokenizer();
  outrider::LlamaFilterFactory filters(*model, (*engine)->info().sequence_length);
  outrider::Scheduler scheduler(**engine, tokenizer, filters, outrider::SchedulerOptions{});
  scheduler.Start();

  outrider::GenerationRequest request;
  request.prompt = tokenizer.Tokenize(argv[2], /*add_bos=*/true, outrider::SpecialTokens::kAsText);
  request.sampling.temperature = 0;
  request.max_tokens = 32;
  auto generation = scheduler.Submit(request);
  if (!generation.ok()) {
    std::fprintf(stderr, "%s\n", generation.status().message().c_str());
    return 1;
  }
  for (bool done = false; !done;) {
    auto chunk = (*generation)->Wait(std::chrono::seconds(60));
    if (!chunk) return 1;
    std::fputs(chunk->text.c_str(), stdout);
    std::fflush(stdout);
    done = chunk->completion.has_value();
  }
  std::puts("");
  return 0;
}
