// LlamaHead: a head (engine/hidden_head.h) over a libllama context of its own: an EAGLE-3 file, or the head for
// multi-token prediction in the target's own file. It may use weights of its target, and computes with the target's
// threads.
//
// All rows of a step are one micro-batch, in the order in which they are given. That is important: libllama returns
// states and logits of heads in the order in which it computes rows, and where some rows want outputs and others do
// not, it returns those of the first rows.
#pragma once

#include <llama.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/hidden_head.h"
#include "engine/llama/llama_context.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/llama_model.h"
#include "engine/model_options.h"

namespace outrider {

class LlamaHead : public HiddenHead {
 public:
  // The head in the file `options.path`. `context`: types of its cache. `target` must outlive it. kInvalidArgument says
  // in one sentence why the head does not fit the target.
  static Result<std::unique_ptr<LlamaHead>> LoadEagle3(ModelOptions options, const ContextOptions& context,
                                                       const LlamaEngine& target);

  // The head in the target's own file, which must be loaded (ModelOptions::heads).
  static Result<std::unique_ptr<LlamaHead>> OfTarget(const ContextOptions& context, const LlamaEngine& target);

  const LlamaModel& model() const { return *model_; }

  const HeadInfo& info() const override { return info_; }
  Status Decode(std::span<const HeadRow> rows, bool wants_outputs) override;
  std::span<const float> Logits(int row) override;
  std::span<const float> State(int row) override;
  Pos Length(SeqId seq) const override { return lengths_[static_cast<size_t>(seq)]; }
  void TruncateTo(SeqId seq, Pos length) override;

 private:
  // `encodes`: the target's states are made into the head's by the head's encoder.
  LlamaHead(std::shared_ptr<LlamaModel> model, LlamaContextPtr context, HeadInfo info, int n_sequences, bool encodes);
  static Result<std::unique_ptr<LlamaHead>> Make(std::shared_ptr<LlamaModel> model, const ContextOptions& context,
                                                 const LlamaEngine& target, llama_context_type type,
                                                 std::vector<int> layers);

  bool Encode(std::span<const HeadRow> rows);
  bool DecodeRows(std::span<const HeadRow> rows, bool wants_outputs);

  const std::shared_ptr<LlamaModel> model_;
  const LlamaContextPtr context_;
  const HeadInfo info_;
  const size_t state_size_;
  const bool encodes_;
  std::vector<Pos> lengths_;  // by sequence

  // The arrays a llama_batch points to, kept from step to step.
  std::vector<float> states_;    // of all rows, as the head takes them
  std::vector<float> features_;  // states of the target, for the encoder
  std::vector<Token> tokens_;
  std::vector<Pos> positions_;
  std::vector<int32_t> sequence_counts_;
  std::vector<SeqId> sequences_;
  std::vector<SeqId*> sequence_pointers_;
  std::vector<int8_t> wants_outputs_;
};

}  // namespace outrider
