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
#include "engine/llama/canonical.h"
#include "engine/llama/llama_model.h"
#include "engine/llama/rollback_probe.h"
#include "engine/model_options.h"
#include "engine/snapshot_store.h"

namespace outrider {

class LlamaEngine : public Engine {
 public:
  // `partner`: an engine driven by the same thread. It lends its compute threads where the numbers agree: threads that
  // wait for its next step would otherwise take the cores from this one's.
  static Result<std::unique_ptr<LlamaEngine>> Create(std::shared_ptr<LlamaModel> model, const ContextOptions& options,
                                                     const LlamaEngine* partner = nullptr);

  const EngineInfo& info() const override { return info_; }
  Status Decode(const Batch& batch) override;
  std::span<const float> Logits(int row) override;
  Pos Length(SeqId seq) const override { return lengths_[static_cast<size_t>(seq)]; }
  Pos TruncateTo(SeqId seq, Pos length) override;
  Pos TruncatedLength(SeqId seq, Pos length) const override;
  int FreeRollback(const Batch& batch) const override;
  void SaveState(SeqId seq) override;
  void Remember(SeqId seq) override;
  Result<std::vector<uint8_t>> SaveSequence(SeqId seq) override;
  Status RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) override;

 private:
  struct FreeContext {
    void operator()(llama_context* context) const { llama_free(context); }
  };
  using ContextPtr = std::unique_ptr<llama_context, FreeContext>;
  // Compute threads: how many, and ggml's pool of them.
  struct Threads {
    int count = 0;
    std::shared_ptr<ggml_threadpool> pool;
  };

  // What the backend's snapshots of a running state are good for.
  struct Undo {
    int rows = -1;         // of the last batch that they can take back, once
    bool pending = false;  // they did, and nothing was decoded since
  };

  LlamaEngine(std::shared_ptr<LlamaModel> model, ContextPtr context, EngineInfo info, const RollbackFinding& rollback,
              size_t snapshot_memory);
  void AttachThreads(int threads, int threads_batch, const LlamaEngine* partner);
  Pos DropCells(SeqId seq, Pos length);
  Pos GoBack(SeqId seq, Pos length);
  void GiveUp(SeqId seq);
  bool CopyState(SeqId seq, llama_state_seq_flags flags, std::vector<uint8_t>* state);
  bool RestoreState(SeqId seq, Pos length, std::span<const uint8_t> state, llama_state_seq_flags flags);
  llama_state_seq_flags FlagsFor(const Snapshot& snapshot) const;
  void AddRow(const BatchRow& row);
  void AddRows(const Batch& batch);
  bool FindGaps(const Batch& batch);
  void AddRowsAndFillers(const Batch& batch);
  void EmptyGaps();
  void SettleOthers(const Batch& batch);
  void CountUndoable(const Batch& batch);

  const std::shared_ptr<LlamaModel> model_;
  Threads threads_, threads_batch_;  // before the context, which uses them to the end
  const ContextPtr context_;
  const EngineInfo info_;
  std::vector<Pos> lengths_;  // tokens in memory, by sequence

  std::vector<int> row_of_;    // scratch: of the batch, by sequence; -1 = none
  std::vector<SeqId> filled_;  // idle sequences that get a row in this batch
  std::vector<int> places_;    // of the last batch's rows among those that were computed; empty = as they were

  // Only for models with a running state.
  const bool states_on_device_;
  std::vector<Undo> undo_;  // by sequence
  SnapshotStore snapshots_;
  std::vector<uint8_t> settled_;  // scratch

  // The arrays a llama_batch points to, kept from step to step.
  std::vector<Pos> positions_;
  std::vector<Token> tokens_;
  std::vector<int32_t> sequence_counts_;
  std::vector<SeqId> sequences_;
  std::vector<SeqId*> sequence_pointers_;
  std::vector<int8_t> wants_logits_;
};

}  // namespace outrider
