#include "engine/llama/llama_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "base/log.h"
#include "engine/llama/backend.h"
#include "engine/padded_engine.h"

namespace outrider {
namespace {

constexpr int kDefaultSequenceContext = 4096;
constexpr int kOutputsPerSequence = 32;

Result<int> ContextTokens(const ContextOptions& options, const LlamaModel& model) {
  if (options.n_sequences < 1 || options.n_sequences > static_cast<int>(llama_max_parallel_sequences())) {
    return InvalidArgument(
        fmt::format("--parallel {} is not between 1 and {}", options.n_sequences, llama_max_parallel_sequences()));
  }
  const Pos trained = model.TrainedContext();
  if (options.context_tokens == 0) return std::min(trained, kDefaultSequenceContext) * options.n_sequences;
  const int per_sequence = options.context_tokens / options.n_sequences;
  if (per_sequence < 16) {
    return InvalidArgument(
        fmt::format("--ctx-size {} leaves {} tokens for each of {} sequences; give more, or lower --parallel",
                    options.context_tokens, per_sequence, options.n_sequences));
  }
  if (trained > 0 && per_sequence > trained) {
    return InvalidArgument(
        fmt::format("--ctx-size {} gives each of {} sequences {} tokens, but the model was trained for {}: use at "
                    "most --ctx-size {}",
                    options.context_tokens, options.n_sequences, per_sequence, trained,
                    static_cast<int64_t>(trained) * options.n_sequences));
  }
  return options.context_tokens;
}

Status ExplainContextFailure(int context_tokens, const std::string& errors) {
  if (errors.find("alloc") != std::string::npos) {
    return InvalidArgument(
        fmt::format("not enough memory for a context of {} tokens: lower --ctx-size or --parallel, or use a "
                    "quantised cache (-ctk q8_0 -ctv q8_0)",
                    context_tokens));
  }
  return InvalidArgument(fmt::format("the context cannot be created: {}",
                                     errors.empty() ? "no reason was given" : errors.substr(0, errors.find('\n'))));
}

}  // namespace

Result<std::unique_ptr<LlamaEngine>> LlamaEngine::Create(std::shared_ptr<LlamaModel> model,
                                                         const ContextOptions& options, const LlamaEngine* partner) {
  auto context_tokens = ContextTokens(options, *model);
  if (!context_tokens.ok()) return context_tokens.status();
  if (options.batch < 1 || options.micro_batch < 1)
    return InvalidArgument("--batch-size and --ubatch-size must be at least 1");
  auto settings = ChooseContextSettings(options, model->AttendsWithOurKernels());
  if (!settings.ok()) return settings.status();

  const int threads = options.threads > 0 ? options.threads : PhysicalCores();
  const int threads_batch = options.threads_batch > 0 ? options.threads_batch : threads;
  const int batch = std::max(options.batch, options.n_sequences);
  const int wanted_outputs = options.max_outputs > 0 ? options.max_outputs : options.n_sequences * kOutputsPerSequence;

  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(*context_tokens);
  params.n_batch = static_cast<uint32_t>(batch);
  params.n_ubatch = static_cast<uint32_t>(std::min(options.micro_batch, batch));
  params.n_seq_max = static_cast<uint32_t>(options.n_sequences);
  params.n_outputs_max = static_cast<uint32_t>(std::clamp(wanted_outputs, options.n_sequences, batch));
  params.n_threads = threads;
  params.n_threads_batch = threads_batch;
  params.flash_attn_type = settings->flash_attention;
  params.type_k = settings->type_k;
  params.type_v = settings->type_v;
  params.kv_unified = settings->unified_memory;
  params.offload_kqv = options.kv_offload;
  params.no_perf = true;
  if (options.exactness != Exactness::kOff) params.op_offload = false;  // wide batches would be sent to a device

  ErrorLogCapture errors;
  const size_t snapshot_memory = static_cast<size_t>(std::max(options.snapshot_mib, 0)) << 20;
  const RollbackFinding rollback =
      ProbeRollback(model->handle(), params, options.device_snapshots ? snapshot_memory : 0);
  params.n_rs_seq = static_cast<uint32_t>(rollback.device_snapshots);
  ContextPtr context(llama_init_from_model(model->handle(), params));
  if (!context) return ExplainContextFailure(*context_tokens, errors.text());

  EngineInfo info;
  info.n_vocab = model->tokenizer().vocabulary_size();
  info.n_sequences = static_cast<int>(llama_n_seq_max(context.get()));
  info.sequence_length = static_cast<Pos>(llama_n_ctx_seq(context.get()));
  info.max_batch = static_cast<int>(llama_n_batch(context.get()));
  info.micro_batch = static_cast<int>(llama_n_ubatch(context.get()));
  info.max_outputs = std::min(static_cast<int>(params.n_outputs_max), info.max_batch);
  info.rollback = rollback.way;
  info.device_snapshots = rollback.device_snapshots;
  info.remembers = KeepsStates(rollback.way) && snapshot_memory > 0;
  info.exactness = settings->caveat.empty() ? model->exactness_caveat() : settings->caveat;
  if (info.exactness.empty() && !rollback.rows_independent)
    info.exactness = "the layers of this model compute a row otherwise when others are decoded with it";
  // Not where a row would leave a trace: in a running state, in a sliding window, among the cells of others.
  const bool traceless = rollback.way == Rollback::kDropCells && llama_model_n_swa(model->handle()) == 0;
  if (options.fill_gaps && traceless && !settings->unified_memory) {
    info.gap_filling = model->on_device() ? GapFilling::kMost : GapFilling::kFew;
  }
  std::unique_ptr<LlamaEngine> engine(
      new LlamaEngine(std::move(model), std::move(context), std::move(info), rollback, snapshot_memory));
  engine->AttachThreads(threads, threads_batch, partner);
  return engine;
}

LlamaEngine::LlamaEngine(std::shared_ptr<LlamaModel> model, ContextPtr context, EngineInfo info,
                         const RollbackFinding& rollback, size_t snapshot_memory)
    : model_(std::move(model)),
      context_(std::move(context)),
      info_(std::move(info)),
      states_on_device_(rollback.states_on_device),
      undo_(static_cast<size_t>(info_.n_sequences)),
      snapshots_(info_.n_sequences, snapshot_memory) {
  lengths_.resize(static_cast<size_t>(info_.n_sequences));
  const auto rows = static_cast<size_t>(info_.max_batch);
  tokens_.reserve(rows);
  positions_.reserve(rows);
  sequences_.reserve(rows);
  wants_logits_.reserve(rows);
  sequence_counts_.assign(rows, 1);
  for (size_t i = 0; i < rows; ++i) sequence_pointers_.push_back(sequences_.data() + i);
}

void LlamaEngine::AttachThreads(int threads, int threads_batch, const LlamaEngine* partner) {
  ggml_threadpool_params params = ggml_threadpool_params_default(threads);
  // Spin for a few milliseconds after a step, which bridges the gap to the next one; the default of 50 would take a
  // core from other programs for a third of a second after every answer.
  params.poll = 1;
  const auto make = [&](int count) {
    for (const Threads* lent : {partner ? &partner->threads_ : nullptr, partner ? &partner->threads_batch_ : nullptr}) {
      if (lent != nullptr && lent->pool && lent->count == count) return *lent;
    }
    params.n_threads = count;
    return Threads{count, {ggml_threadpool_new(&params), ggml_threadpool_free}};
  };
  threads_ = make(threads);
  params.paused = true;  // libllama wakes the one it uses
  if (threads_batch != threads) threads_batch_ = make(threads_batch);
  llama_attach_threadpool(context_.get(), threads_.pool.get(), threads_batch_.pool.get());
}

Status LlamaEngine::Decode(const Batch& batch) {
  if (batch.empty()) return {};
  if (batch.size() > info_.max_batch)
    return Internal(fmt::format("a batch of {} rows exceeds {}", batch.size(), info_.max_batch));
  tokens_.clear();
  positions_.clear();
  sequences_.clear();
  wants_logits_.clear();
  if (FindGaps(batch)) {
    AddRowsAndFillers(batch);
  } else {
    AddRows(batch);
  }
  const auto outputs = std::count(wants_logits_.begin(), wants_logits_.end(), 1);
  if (outputs > info_.max_outputs)
    return Internal(fmt::format("{} rows want logits; at most {} may", outputs, info_.max_outputs));
  llama_batch view{};
  view.n_tokens = static_cast<int32_t>(tokens_.size());
  view.token = tokens_.data();
  view.pos = positions_.data();
  view.n_seq_id = sequence_counts_.data();
  view.seq_id = sequence_pointers_.data();
  view.logits = wants_logits_.data();

  SettleOthers(batch);
  for (Undo& undo : undo_) undo.rows = -1;
  ErrorLogCapture errors;
  int32_t code = 0;
  std::string reason;
  try {
    code = llama_decode(context_.get(), view);
  } catch (const std::exception& error) {  // out of memory, or a device that failed
    code = -1;
    reason = fmt::format(": {}", error.what());
  }
  EmptyGaps();
  if (code != 0) {
    if (!errors.text().empty()) reason = ": " + errors.text().substr(0, errors.text().find('\n'));
    return Internal(
        fmt::format("the engine could not decode a batch of {} rows (code {}){}", batch.size(), code, reason));
  }
  CountUndoable(batch);
  for (const BatchRow& row : batch.rows()) lengths_[static_cast<size_t>(row.seq)] = row.pos + 1;
  return {};
}

void LlamaEngine::AddRow(const BatchRow& row) {
  tokens_.push_back(row.token);
  positions_.push_back(row.pos);
  sequences_.push_back(row.seq);
  wants_logits_.push_back(row.wants_logits ? 1 : 0);
}

void LlamaEngine::AddRows(const Batch& batch) {
  places_.clear();
  for (const BatchRow& row : batch.rows()) AddRow(row);
}

// libllama computes sequences together if they come one after the other with consecutive ids, and in parts if not. So
// where each has one row, idle ones in between get one too; unless they are longer than all others, whose rows would
// then walk over as much memory.
bool LlamaEngine::FindGaps(const Batch& batch) {
  filled_.clear();
  if (info_.gap_filling == GapFilling::kNever) return false;
  row_of_.assign(static_cast<size_t>(info_.n_sequences), -1);
  SeqId first = info_.n_sequences, last = 0;
  Pos longest = 0;
  for (int row = 0; row < batch.size(); ++row) {
    const BatchRow& its = batch.rows()[static_cast<size_t>(row)];
    if (std::exchange(row_of_[static_cast<size_t>(its.seq)], row) >= 0) return false;
    first = std::min(first, its.seq);
    last = std::max(last, its.seq);
    longest = std::max(longest, its.pos);
  }
  const int gaps = last - first + 1 - batch.size();
  if (!FillsGaps(info_.gap_filling, batch.size(), gaps) || batch.size() + gaps > info_.micro_batch) return false;
  for (SeqId seq = first; seq < last; ++seq) {
    if (row_of_[static_cast<size_t>(seq)] >= 0) continue;
    const bool longer = Length(seq) / PaddedEngine::kMemoryBlock > longest / PaddedEngine::kMemoryBlock;
    if (!longer && Length(seq) < info_.sequence_length) filled_.push_back(seq);
  }
  return !filled_.empty();
}

// In the order of the sequences.
void LlamaEngine::AddRowsAndFillers(const Batch& batch) {
  places_.assign(static_cast<size_t>(batch.size()), 0);
  auto filler = filled_.begin();
  for (SeqId seq = 0; seq < info_.n_sequences; ++seq) {
    if (const int row = row_of_[static_cast<size_t>(seq)]; row >= 0) {
      places_[static_cast<size_t>(row)] = static_cast<int>(tokens_.size());
      AddRow(batch.rows()[static_cast<size_t>(row)]);
    } else if (filler != filled_.end() && *filler == seq) {
      AddRow({batch.rows()[0].token, Length(seq), seq, false});
      ++filler;
    }
  }
}

void LlamaEngine::EmptyGaps() {
  for (const SeqId seq : filled_) llama_memory_seq_rm(llama_get_memory(context_.get()), seq, Length(seq), -1);
}

std::span<const float> LlamaEngine::Logits(int row) {
  const int place = places_.empty() ? row : places_[static_cast<size_t>(row)];
  const float* logits = llama_get_logits_ith(context_.get(), place);
  assert(logits != nullptr && "the row did not ask for logits");
  return {logits, static_cast<size_t>(info_.n_vocab)};
}

Pos LlamaEngine::TruncateTo(SeqId seq, Pos length) {
  Pos& current = lengths_[static_cast<size_t>(seq)];
  return current = info_.rollback == Rollback::kDropCells ? DropCells(seq, length) : GoBack(seq, length);
}

Pos LlamaEngine::DropCells(SeqId seq, Pos length) {
  const Pos current = Length(seq);
  llama_memory_t memory = llama_get_memory(context_.get());
  // Cells past `current` may be there after a failed decode.
  bool kept = length > 0 && llama_memory_seq_rm(memory, seq, std::min(length, current), -1);
  if (kept && length < current) {
    // Layers with a sliding window have forgotten what lies before it: going back is possible only while the window is
    // whole.
    const Pos window = llama_model_n_swa(model_->handle());
    kept = window <= 0 || llama_memory_seq_pos_min(memory, seq) <= std::max(0, length - window);
  }
  if (kept) return std::min(current, length);
  GiveUp(seq);
  return 0;
}

// Takes a running state back: by the backend's snapshots if they reach far enough, else to one of ours.
Pos LlamaEngine::GoBack(SeqId seq, Pos length) {
  const Pos current = Length(seq);
  Undo& undo = undo_[static_cast<size_t>(seq)];
  if (length >= current && length > 0) return current;
  const int rows = current - length;
  // What libllama's answer does not tell: snapshots are those of the last batch, of as many rows as it had.
  if (length > 0 && rows <= undo.rows && llama_memory_seq_rm(llama_get_memory(context_.get()), seq, length, -1)) {
    undo = {-1, true};
    snapshots_.Cut(seq, length);
    return length;
  }
  const Snapshot* snapshot = snapshots_.Latest(seq, length);
  if (length > 0 && snapshot != nullptr && RestoreState(seq, snapshot->length, snapshot->state, FlagsFor(*snapshot))) {
    const Pos back = snapshot->length;
    snapshots_.Cut(seq, back);
    return back;
  }
  GiveUp(seq);
  return 0;
}

Pos LlamaEngine::TruncatedLength(SeqId seq, Pos length) const {
  const Pos current = Length(seq);
  const bool drops = info_.rollback == Rollback::kDropCells;
  if (drops || length >= current || current - length <= undo_[static_cast<size_t>(seq)].rows)
    return std::min(length, current);
  const Snapshot* snapshot = snapshots_.Latest(seq, length);
  return snapshot != nullptr ? snapshot->length : 0;
}

void LlamaEngine::GiveUp(SeqId seq) {
  llama_memory_seq_rm(llama_get_memory(context_.get()), seq, -1, -1);
  undo_[static_cast<size_t>(seq)] = {};
  snapshots_.BeginLife(seq);
}

// Sequences of unequal width, or that are not neighbours, are computed one part after the other, and a later part may
// move states of an earlier one to another place: the present ones, not the snapshots beside them.
int LlamaEngine::FreeRollback(const Batch& batch) const {
  if (info_.rollback == Rollback::kDropCells) return std::numeric_limits<int>::max();
  const std::span<const BatchRow> rows = batch.rows();
  size_t first_width = 0, width = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    ++width;
    const bool last = i + 1 == rows.size() || rows[i + 1].seq != rows[i].seq;
    if (!last) continue;
    const bool neighbour_follows = i + 1 == rows.size() || rows[i + 1].seq == rows[i].seq + 1;
    if (first_width == 0) first_width = width;
    if (width != first_width || !neighbour_follows) return 0;
    width = 0;
  }
  const bool one_sequence = first_width == rows.size();
  return one_sequence || batch.size() <= info_.micro_batch ? info_.device_snapshots : 0;
}

void LlamaEngine::SaveState(SeqId seq) {
  if (!KeepsStates(info_.rollback) || Length(seq) == 0) return;
  Snapshot* snapshot = snapshots_.BeforeDraft(seq, Length(seq));
  if (snapshot != nullptr && !CopyState(seq, FlagsFor(*snapshot), &snapshot->state)) snapshots_.DropBeforeDraft(seq);
}

void LlamaEngine::Remember(SeqId seq) {
  if (!KeepsStates(info_.rollback) || Length(seq) == 0) return;
  constexpr auto kFlags = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
  if (!snapshots_.WorthKeeping(seq, Length(seq), llama_state_seq_get_size_ext(context_.get(), seq, kFlags))) return;
  std::vector<uint8_t> state;
  if (CopyState(seq, kFlags, &state)) snapshots_.Keep(seq, Length(seq), std::move(state));
}

// libllama keeps one state per sequence on the device: that before a draft.
llama_state_seq_flags LlamaEngine::FlagsFor(const Snapshot& snapshot) const {
  const bool on_device = states_on_device_ && snapshots_.IsBeforeDraft(snapshot);
  return LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY | (on_device ? LLAMA_STATE_SEQ_FLAGS_ON_DEVICE : 0);
}

bool LlamaEngine::CopyState(SeqId seq, llama_state_seq_flags flags, std::vector<uint8_t>* state) {
  try {
    state->resize(llama_state_seq_get_size_ext(context_.get(), seq, flags));
    return !state->empty() &&
           llama_state_seq_get_data_ext(context_.get(), state->data(), state->size(), seq, flags) == state->size();
  } catch (const std::exception& error) {  // out of memory, or a device that failed
    LogError("a state of sequence {} could not be kept: {}", seq, error.what());
    return false;
  }
}

bool LlamaEngine::RestoreState(SeqId seq, Pos length, std::span<const uint8_t> state, llama_state_seq_flags flags) {
  undo_[static_cast<size_t>(seq)] = {};
  llama_memory_t memory = llama_get_memory(context_.get());
  try {
    const size_t read = llama_state_seq_set_data_ext(context_.get(), state.data(), state.size(), seq, flags);
    // The state went back; attention cells of the tokens since are still there.
    return read == state.size() && llama_memory_seq_rm(memory, seq, length, -1) &&
           llama_memory_seq_pos_max(memory, seq) == length - 1;
  } catch (const std::exception& error) {
    LogError("a state of sequence {} could not be restored: {}", seq, error.what());
    return false;
  }
}

// A state that was taken back by the backend's snapshots lies among them until its sequence is decoded. If others are
// decoded first it is put in its place, where they leave it alone.
void LlamaEngine::SettleOthers(const Batch& batch) {
  for (SeqId seq = 0; seq < info_.n_sequences; ++seq) {
    if (!undo_[static_cast<size_t>(seq)].pending) continue;
    const auto is_its = [seq](const BatchRow& row) { return row.seq == seq; };
    if (std::any_of(batch.rows().begin(), batch.rows().end(), is_its)) continue;
    constexpr auto kFlags = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
    if (!CopyState(seq, kFlags, &settled_) || !RestoreState(seq, Length(seq), settled_, kFlags)) {
      GiveUp(seq);
      lengths_[static_cast<size_t>(seq)] = 0;
    }
  }
}

// Rows that can be taken back by the backend's snapshots: all of the last batch but the first, as far as there are any.
void LlamaEngine::CountUndoable(const Batch& batch) {
  if (info_.device_snapshots == 0) return;
  for (Undo& undo : undo_) undo.pending = false;
  const int most = FreeRollback(batch);
  for (const BatchRow& row : batch.rows()) {
    int& undoable = undo_[static_cast<size_t>(row.seq)].rows;
    undoable = std::min(undoable + 1, most);
  }
}

Result<std::vector<uint8_t>> LlamaEngine::SaveSequence(SeqId seq) {
  std::vector<uint8_t> state;
  try {
    state.resize(llama_state_seq_get_size(context_.get(), seq));
  } catch (const std::bad_alloc&) {
    return Internal(fmt::format("there is not enough memory to copy that of sequence {}", seq));
  }
  if (llama_state_seq_get_data(context_.get(), state.data(), state.size(), seq) != state.size()) {
    return Internal(fmt::format("the memory of sequence {} could not be copied", seq));
  }
  return state;
}

Status LlamaEngine::RestoreSequence(SeqId seq, std::span<const uint8_t> state, Pos length) {
  TruncateTo(seq, 0);
  const size_t read =
      length <= info_.sequence_length ? llama_state_seq_set_data(context_.get(), state.data(), state.size(), seq) : 0;
  const bool whole =
      read == state.size() && llama_memory_seq_pos_max(llama_get_memory(context_.get()), seq) == length - 1;
  lengths_[static_cast<size_t>(seq)] = length;
  if (whole) return {};
  GiveUp(seq);
  lengths_[static_cast<size_t>(seq)] = 0;
  return InvalidArgument(
      "the saved state does not belong to this model and these settings, or is longer than the context");
}

}  // namespace outrider
