#include "engine/llama/llama_engine.h"

#include <fmt/format.h>
#include <llama-ext.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/log.h"
#include "engine/llama/backend.h"

namespace outrider {

Result<std::unique_ptr<LlamaEngine>> LlamaEngine::Create(std::shared_ptr<LlamaModel> model,
                                                         const ContextOptions& options, const LlamaEngine* partner) {
  auto made = MakeLlamaContext(*model, options);
  if (!made.ok()) return made.status();
  // Filling gaps is not possible where the additional row could not be removed completely: in a running state, in a
  // sliding window, or in a memory that sequences share.
  const bool removable =
      made->info.rollback == Rollback::kDropCells && llama_model_n_swa(model->handle()) == 0 && !made->shared_memory;
  const bool fills_gaps = options.fill_gaps && removable;
  const auto pool = ThreadPoolParams(options.cpu, made->threads);
  if (!pool.ok()) return pool.status();
  const auto pool_batch = ThreadPoolParams(Inherit(options.cpu_batch, options.cpu), made->threads_batch);
  if (!pool_batch.ok()) return pool_batch.status();
  std::unique_ptr<LlamaEngine> engine(new LlamaEngine(std::move(model), std::move(*made), fills_gaps));
  engine->AttachThreads(*pool, *pool_batch, partner);
  return engine;
}

LlamaEngine::LlamaEngine(std::shared_ptr<LlamaModel> model, LlamaContext made, bool fills_gaps)
    : model_(std::move(model)),
      context_(std::move(made.context)),
      info_(std::move(made.info)),
      row_values_(static_cast<size_t>(llama_model_n_embd_inp(model_->handle()))),
      fills_gaps_(fills_gaps),
      memory_(context_.get(), info_.n_sequences, made.rollback, made.snapshot_bytes),
      // Running states are always cut equally.
      split_(info_.micro_batch,
             info_.rollback == Rollback::kDropCells && (made.shared_memory || info_.n_sequences == 1),
             info_.device_snapshots > 0 ? info_.device_snapshots + 1 : 0) {
  const auto rows = static_cast<size_t>(info_.max_batch);
  tokens_.reserve(rows);
  positions_.reserve(rows);
  sequences_.reserve(rows);
  wants_logits_.reserve(rows);
  sequence_counts_.assign(rows, 1);
  for (size_t i = 0; i < rows; ++i) sequence_pointers_.push_back(sequences_.data() + i);
}

void LlamaEngine::AttachThreads(const ggml_threadpool_params& params, ggml_threadpool_params params_batch,
                                const LlamaEngine* partner) {
  const auto make = [&](const ggml_threadpool_params& wanted) {
    if (partner != nullptr) {
      for (const auto& lent : {partner->threads_, partner->threads_batch_}) {
        if (lent != nullptr && lent->Matches(wanted)) return lent;
      }
    }
    return std::make_shared<ComputeThreads>(wanted);
  };
  threads_ = make(params);
  params_batch.paused = true;  // libllama resumes the pool that it uses
  if (!ggml_threadpool_params_match(&params, &params_batch)) threads_batch_ = make(params_batch);
  LendThreads(context_.get());
}

void LlamaEngine::LendThreads(llama_context* other) const {
  llama_attach_threadpool(other, threads_->handle(), threads_batch_ ? threads_batch_->handle() : nullptr);
}

Status LlamaEngine::Decode(const Batch& batch) {
  if (batch.empty()) return {};
  if (batch.size() > info_.max_batch)
    return Internal(fmt::format("a batch of {} rows exceeds {}", batch.size(), info_.max_batch));
  const auto outputs =
      std::count_if(batch.rows().begin(), batch.rows().end(), [](const auto& r) { return r.wants_logits; });
  if (outputs > info_.max_outputs)
    return Internal(fmt::format("{} rows want logits; at most {} may", outputs, info_.max_outputs));
  const bool wants_hidden =
      std::any_of(batch.rows().begin(), batch.rows().end(), [](const BatchRow& row) { return row.wants_hidden; });
  step_.clear();
  for (const BatchRow& row : batch.rows()) {
    if (step_.empty() || step_.back().seq != row.seq) step_.push_back({row.seq, 0});
    ++step_.back().rows;
  }
  logits_copied_ = false;
  if (!wants_hidden) return DecodeRows(batch, batch.size());
  hidden_.Reset(batch.size());
  return DecodeWithHidden(batch);
}

// Decodes `batch`, which is (a part of) a batch of `batch_rows` rows.
Status LlamaEngine::DecodeRows(const Batch& batch, int batch_rows) {
  LayOut(step_, &layout_);  // also sets `filled_`
  AddRows(batch);
  llama_batch view{};
  view.n_tokens = static_cast<int32_t>(tokens_.size());
  view.token = values_.empty() ? tokens_.data() : nullptr;
  view.embd = values_.empty() ? nullptr : values_.data();
  view.pos = positions_.data();
  view.n_seq_id = sequence_counts_.data();
  view.seq_id = sequence_pointers_.data();
  view.logits = wants_logits_.data();

  UseAdapters(batch.adapters());
  memory_.BeforeDecode(batch.rows());
  ErrorLogCapture errors;
  int32_t code = 0;
  std::string reason;
  try {
    code = llama_decode(context_.get(), view);
    // A device computes on its own. Logits would be waited for when they are first read, as if drawing took that time.
    if (std::any_of(wants_logits_.begin(), wants_logits_.end(), [](int8_t wants) { return wants != 0; })) {
      llama_synchronize(context_.get());
    }
  } catch (const std::exception& error) {  // out of memory, or a device that failed
    code = -1;
    reason = fmt::format(": {}", error.what());
  }
  memory_.DropFillers(filled_);
  if (code != 0) {
    if (!errors.text().empty()) reason = ": " + errors.text().substr(0, errors.text().find('\n'));
    return Internal(
        fmt::format("the engine could not decode a batch of {} rows (code {}){}", batch_rows, code, reason));
  }
  memory_.AfterDecode(batch.rows(), layout_.free_rollback);
  return {};
}

// Another set makes libllama build its graphs again, so it is only set when it changes. It must be set right before the
// next decode: libllama tells sets apart by where they lie in memory, and a third one may lie where the first one did.
void LlamaEngine::UseAdapters(const AdapterSet& adapters) {
  if (adapters == adapters_) return;
  std::vector<llama_adapter_lora*> handles;
  std::vector<float> scales;
  for (const AdapterScale& adapter : adapters) {
    handles.push_back(model_->adapters()[static_cast<size_t>(adapter.id)].handle.get());
    scales.push_back(adapter.scale);
  }
  llama_set_adapters_lora(context_.get(), handles.data(), handles.size(), scales.data());
  adapters_ = adapters;
}

// libllama returns hidden states in the order in which it computes rows; only logits are put back into the order of the
// batch. So if the two orders differ, each part is decoded by a call of its own. The parts and their order stay the
// same.
Status LlamaEngine::DecodeWithHidden(const Batch& batch) {
  const std::vector<SequenceRows> step = step_;
  const auto cut = split_.Cut(step);
  const std::vector<StepSplit::Part> parts(cut.begin(), cut.end());
  if (InBatchOrder(parts)) {
    if (Status status = DecodeRows(batch, batch.size()); !status.ok()) return status;
    KeepHidden(batch, {});
    return {};
  }
  logits_copied_ = true;
  logits_.Reset(batch.size());
  std::vector<int> first_row(step.size(), 0);  // in the batch, by sequence
  for (size_t i = 1; i < step.size(); ++i) first_row[i] = first_row[i - 1] + step[i - 1].rows;
  for (const StepSplit::Part& part : parts) {
    Batch rows;
    rows.Clear(batch.adapters());
    std::vector<int> rows_of_batch;
    step_.clear();
    for (const StepSplit::Slice& slice : part) {
      step_.push_back({step[slice.sequence].seq, slice.rows});
      for (int i = 0; i < slice.rows; ++i) {
        rows_of_batch.push_back(first_row[slice.sequence] + slice.first_row + i);
        rows.Add(batch.rows()[static_cast<size_t>(rows_of_batch.back())]);
      }
    }
    if (Status status = DecodeRows(rows, batch.size()); !status.ok()) return status;
    for (int i = 0; i < rows.size(); ++i) {
      if (rows.rows()[static_cast<size_t>(i)].wants_logits)
        logits_.Add(rows_of_batch[static_cast<size_t>(i)], RowLogits(i));
    }
    KeepHidden(rows, rows_of_batch);
  }
  return {};
}

// Copies the hidden states of the rows just decoded, which are `rows_of_batch` of the whole batch (empty: all of them).
void LlamaEngine::KeepHidden(const Batch& rows, std::span<const int> rows_of_batch) {
  for (int i = 0; i < rows.size(); ++i) {
    if (!rows.rows()[static_cast<size_t>(i)].wants_hidden) continue;
    const int place = PlaceOf(i);
    for (const int layer : hidden_layers_) {
      const bool last = layer == model_->LayerCount();
      const auto size = static_cast<size_t>(last ? llama_model_n_embd_out(model_->handle()) : model_->EmbeddingSize());
      const float* all = last ? llama_get_embeddings_nextn(context_.get())
                              : llama_get_embeddings_layer_inp(context_.get(), static_cast<uint32_t>(layer));
      hidden_.Add(rows_of_batch.empty() ? i : rows_of_batch[static_cast<size_t>(i)],
                  {all + static_cast<size_t>(place) * size, size});
    }
  }
}

void LlamaEngine::AddRow(const BatchRow& row) {
  tokens_.push_back(row.token);
  if (row.values != nullptr) values_.insert(values_.end(), row.values, row.values + row_values_);
  positions_.push_back(row.pos);
  sequences_.push_back(row.seq);
  wants_logits_.push_back(row.wants_logits ? 1 : 0);
}

// Adds the rows of `batch` in the order of their sequences, and a row for each idle sequence in `filled_`.
void LlamaEngine::AddRows(const Batch& batch) {
  tokens_.clear();
  values_.clear();
  positions_.clear();
  sequences_.clear();
  wants_logits_.clear();
  places_.clear();
  auto filler = filled_.begin();
  for (const BatchRow& row : batch.rows()) {
    for (; filler != filled_.end() && *filler < row.seq; ++filler) {
      AddRow({row.token, Length(*filler), *filler, false, false, row.values});
    }
    if (!filled_.empty()) places_.push_back(static_cast<int>(tokens_.size()));
    AddRow(row);
  }
}

// Fills `filled_` with the idle sequences that get a row in this step. libllama computes sequences in one part only if
// their ids are consecutive. So if each sequence has one row, and an additional row costs less than another part, idle
// sequences with ids in between get a row too; it is removed after the step. Sequences that are longer than all others
// are left out, because the attention of all rows would then read as much memory as theirs.
void LlamaEngine::FindGaps(std::span<const SequenceRows> step) const {
  filled_.clear();
  if (!fills_gaps_ || step.empty()) return;
  Pos longest = 0;
  for (const SequenceRows& sequence : step) {
    if (sequence.rows > 1) return;
    longest = std::max(longest, Length(sequence.seq));
  }
  const auto rows = static_cast<int>(step.size());
  const int gaps = step.back().seq - step.front().seq + 1 - rows;
  if (gaps == 0 || gaps > MaxGapsToFill(rows, model_->on_device()) || rows + gaps > info_.micro_batch) return;
  auto next = step.begin();
  for (SeqId seq = step.front().seq; seq < step.back().seq; ++seq) {
    if (next->seq == seq) {
      ++next;
      continue;
    }
    const bool longer = Length(seq) / info_.memory_block > longest / info_.memory_block;
    if (!longer && Length(seq) < info_.sequence_length) filled_.push_back(seq);
  }
}

// If a step has several parts, a later part may move the running states of an earlier part to another place in memory,
// but not the backend's snapshots of them. So these snapshots can only be used after steps of one part or of one
// sequence.
void LlamaEngine::LayOut(std::span<const SequenceRows> step, StepLayout* layout) const {
  FindGaps(step);
  std::span<const SequenceRows> rows = step;
  if (!filled_.empty()) {
    with_gaps_.assign(step.begin(), step.end());
    for (const SeqId seq : filled_) with_gaps_.push_back({seq, 1});
    std::sort(with_gaps_.begin(), with_gaps_.end(), [](const auto& a, const auto& b) { return a.seq < b.seq; });
    rows = with_gaps_;
  }
  layout->parts.clear();
  for (const StepSplit::Part& part : split_.Cut(rows)) layout->parts.push_back(RowsOf(part));
  layout->free_rollback = StepLayout::kAllRows;
  if (info_.rollback == Rollback::kDropCells) return;
  layout->free_rollback = step.size() == 1 || layout->parts.size() == 1 ? info_.device_snapshots : 0;
}

// The index of a row among the rows that were computed (which include those of `filled_`).
int LlamaEngine::PlaceOf(int row) const {
  return places_.empty() ? row : places_[static_cast<size_t>(row)];
}

// Logits of a row of the last llama_decode.
std::span<const float> LlamaEngine::RowLogits(int row) {
  const float* logits = llama_get_logits_ith(context_.get(), PlaceOf(row));
  assert(logits != nullptr && "the row did not ask for logits");
  return {logits, static_cast<size_t>(info_.n_vocab)};
}

std::span<const float> LlamaEngine::Logits(int row) {
  return logits_copied_ ? logits_.Of(row) : RowLogits(row);
}

Status LlamaEngine::ProvideHidden(std::span<const int> layers) {
  if (Status status = CheckHiddenLayers(*model_, layers); !status.ok()) return status;
  if (std::equal(layers.begin(), layers.end(), hidden_layers_.begin(), hidden_layers_.end())) return {};
  if (!hidden_layers_.empty()) return Unsupported("another drafter reads the hidden states of other layers already");
  hidden_layers_.assign(layers.begin(), layers.end());
  for (const int layer : layers) {
    if (layer == model_->LayerCount()) {
      llama_set_embeddings_nextn(context_.get(), true, /*masked=*/false);
    } else {
      llama_set_embeddings_layer_inp(context_.get(), static_cast<uint32_t>(layer), true);
    }
  }
  return {};
}

}  // namespace outrider
