// Engine over a libllama context. Each engine has its own context, threads and memory; several may share a model or a
// process.
#pragma once

#include <ggml-cpu.h>
#include <llama.h>

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/llama/compute_threads.h"
#include "engine/llama/llama_context.h"
#include "engine/llama/llama_model.h"
#include "engine/llama/sequence_memory.h"
#include "engine/model_options.h"
#include "engine/row_values.h"
#include "engine/step_split.h"

namespace outrider {

class LlamaEngine : public Engine {
 public:
  // `partner`: an engine that is driven by the same thread. If both use the same number of compute threads, they share
  // them. Otherwise the partner's threads, which spin while they wait for its next step, would take the cores from this
  // engine's threads.
  static Result<std::unique_ptr<LlamaEngine>> Create(std::shared_ptr<LlamaModel> model, const ContextOptions& options,
                                                     const LlamaEngine* partner = nullptr);

  const std::shared_ptr<LlamaModel>& model() const { return model_; }
  llama_context* handle() const { return context_.get(); }  // for a head, which reads the model through it

  // Another context, driven by the same thread, computes with these threads.
  void LendThreads(llama_context* other) const;

  const EngineInfo& info() const override { return info_; }
  Status Decode(const Batch& batch) override;
  std::span<const float> Logits(int row) override;
  Status ProvideHidden(std::span<const int> layers) override;
  std::span<const float> Hidden(int row) override { return hidden_.Of(row); }
  void LayOut(std::span<const SequenceRows> step, StepLayout* layout) const override;
  Pos Length(SeqId seq) const override { return memory_.Length(seq); }
  Pos TruncateTo(SeqId seq, Pos length) override { return memory_.TruncateTo(seq, length); }
  Pos TruncatedLength(SeqId seq, Pos length) const override { return memory_.TruncatedLength(seq, length); }
  void SaveState(SeqId seq) override { memory_.SaveState(seq); }
  void Remember(SeqId seq) override { memory_.Remember(seq); }
  Result<std::vector<uint8_t>> SaveSequence(SeqId seq) override { return memory_.SaveSequence(seq); }
  Status RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) override {
    return memory_.RestoreSequence(seq, state, length);
  }

 private:
  LlamaEngine(std::shared_ptr<LlamaModel> model, LlamaContext made, bool fills_gaps);
  void UseAdapters(const AdapterSet& adapters);
  void AttachThreads(const ggml_threadpool_params& params, ggml_threadpool_params params_batch,
                     const LlamaEngine* partner);
  Status DecodeRows(const Batch& batch, int batch_rows);
  Status DecodeWithHidden(const Batch& batch);
  void KeepHidden(const Batch& rows, std::span<const int> rows_of_batch);
  void AddRow(const BatchRow& row);
  void AddRows(const Batch& batch);
  void FindGaps(std::span<const SequenceRows> step) const;
  int PlaceOf(int row) const;
  std::span<const float> RowLogits(int row);

  const std::shared_ptr<LlamaModel> model_;
  std::shared_ptr<ComputeThreads> threads_,
      threads_batch_;  // before the context, which uses them until it is destroyed
  const LlamaContextPtr context_;
  const EngineInfo info_;
  const size_t row_values_;  // numbers of a row that has some instead of a token
  const bool fills_gaps_;    // idle sequences between those of a step may get a row too (FindGaps)
  SequenceMemory memory_;

  // Scratch of LayOut.
  mutable StepSplit split_;
  mutable std::vector<SeqId> filled_;  // idle sequences that get a row in the step
  mutable std::vector<SequenceRows> with_gaps_;

  AdapterSet adapters_;  // which the context applies now

  // Of the last batch.
  std::vector<SequenceRows> step_;
  StepLayout layout_;
  std::vector<int> places_;  // by row: its index among the rows that were computed; empty = the same
  bool logits_copied_ = false;
  RowValues logits_;  // if logits_copied_
  std::vector<int> hidden_layers_;
  RowValues hidden_;

  // The arrays a llama_batch points to, kept from step to step.
  std::vector<Pos> positions_;
  std::vector<Token> tokens_;
  std::vector<float> values_;  // of all rows, instead of tokens_
  std::vector<int32_t> sequence_counts_;
  std::vector<SeqId> sequences_;
  std::vector<SeqId*> sequence_pointers_;
  std::vector<int8_t> wants_logits_;
};

}  // namespace outrider
