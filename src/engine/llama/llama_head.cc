#include "engine/llama/llama_head.h"

#include <fmt/format.h>
#include <llama-ext.h>

#include <algorithm>
#include <cassert>
#include <exception>
#include <utility>

#include "engine/llama/backend.h"
#include "engine/llama/canonical.h"
#include "engine/llama/head_file.h"

namespace outrider {
namespace {

// libllama computes the output layer for all rows of an EAGLE-3 head, wanted or not: its memory for them is this size
// times the vocabulary.
constexpr int kMaxBatch = 128;
constexpr int kMinOutputs = 64;  // so many rows of a step may give outputs, and at least one of each sequence

}  // namespace

Result<std::unique_ptr<LlamaHead>> LlamaHead::LoadEagle3(ModelOptions options, const ContextOptions& context,
                                                         const LlamaEngine& target) {
  const LlamaModel& its_model = *target.model();
  const HeadTarget fits{its_model.LayerCount(), its_model.EmbeddingSize(), its_model.tokenizer().vocabulary_size()};
  if (Status status = CheckEagle3File(options.path, fits); !status.ok()) return status;
  options.exactness = Exactness::kOff;
  auto model = LlamaModel::Load(options);
  if (!model.ok()) return Status(model.status().code(), "EAGLE-3 head: " + model.status().message());
  const int32_t* layers = llama_model_target_layer_ids((*model)->handle());
  const uint32_t count = llama_model_target_layer_ids_n((*model)->handle());
  return Make(std::move(*model), context, target, LLAMA_CONTEXT_TYPE_DEFAULT, {layers, layers + count});
}

Result<std::unique_ptr<LlamaHead>> LlamaHead::OfTarget(const ContextOptions& context, const LlamaEngine& target) {
  return Make(target.model(), context, target, LLAMA_CONTEXT_TYPE_MTP, {target.model()->LayerCount()});
}

Result<std::unique_ptr<LlamaHead>> LlamaHead::Make(std::shared_ptr<LlamaModel> model, const ContextOptions& context,
                                                   const LlamaEngine& target, llama_context_type type,
                                                   std::vector<int> layers) {
  ContextOptions options = context;
  options.exactness = Exactness::kOff;
  const auto settings = ChooseContextSettings(options, Attention::kGgml);
  if (!settings.ok()) return settings.status();
  const EngineInfo& engine = target.info();
  HeadInfo info;
  info.layers = std::move(layers);
  info.n_vocab = model->tokenizer().vocabulary_size();
  info.sequence_length = engine.sequence_length;
  info.max_batch = std::max(kMaxBatch, engine.n_sequences);
  info.max_outputs = std::max(kMinOutputs, engine.n_sequences);

  llama_context_params params = llama_context_default_params();
  params.ctx_type = type;
  params.ctx_other = target.handle();
  params.n_ctx = static_cast<uint32_t>(engine.sequence_length * engine.n_sequences);
  params.n_batch = params.n_ubatch = static_cast<uint32_t>(info.max_batch);
  params.n_seq_max = static_cast<uint32_t>(engine.n_sequences);
  params.n_outputs_max = static_cast<uint32_t>(info.max_outputs);
  params.n_threads = llama_n_threads(target.handle());
  params.n_threads_batch = llama_n_threads_batch(target.handle());
  params.flash_attn_type = settings->flash_attention;
  params.type_k = settings->type_k;
  params.type_v = settings->type_v;
  params.kv_unified = true;  // rows are computed in the order in which they are given
  params.offload_kqv = options.kv_offload;
  params.no_perf = true;
  SetRope(model->rope(), &params);
  ErrorLogCapture errors;
  LlamaContextPtr made(llama_init_from_model(model->handle(), params));
  if (!made) {
    return InvalidArgument(
        fmt::format("the head's context cannot be created: {}",
                    errors.text().empty() ? "no reason was given" : errors.text().substr(0, errors.text().find('\n'))));
  }
  llama_set_embeddings_nextn(made.get(), true, /*masked=*/true);
  target.LendThreads(made.get());
  const bool encodes = type != LLAMA_CONTEXT_TYPE_MTP;
  return std::unique_ptr<LlamaHead>(
      new LlamaHead(std::move(model), std::move(made), std::move(info), engine.n_sequences, encodes));
}

LlamaHead::LlamaHead(std::shared_ptr<LlamaModel> model, LlamaContextPtr context, HeadInfo info, int n_sequences,
                     bool encodes)
    : model_(std::move(model)),
      context_(std::move(context)),
      info_(std::move(info)),
      state_size_(static_cast<size_t>(llama_model_n_embd_out(model_->handle()))),
      encodes_(encodes),
      lengths_(static_cast<size_t>(n_sequences)) {
  const auto rows = static_cast<size_t>(info_.max_batch);
  sequences_.resize(rows);
  sequence_counts_.assign(rows, 1);
  for (size_t i = 0; i < rows; ++i) sequence_pointers_.push_back(sequences_.data() + i);
}

Status LlamaHead::Decode(std::span<const HeadRow> rows, bool wants_outputs) {
  assert(rows.size() <= static_cast<size_t>(info_.max_batch));
  states_.resize(rows.size() * state_size_);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (encodes_ && rows[i].from_target) continue;
    assert(rows[i].state.size() == state_size_);
    std::copy(rows[i].state.begin(), rows[i].state.end(),
              states_.begin() + static_cast<std::ptrdiff_t>(i * state_size_));
  }
  ErrorLogCapture errors;
  std::string reason;
  try {
    if (Encode(rows) && DecodeRows(rows, wants_outputs)) {
      for (const HeadRow& row : rows) lengths_[static_cast<size_t>(row.seq)] = row.place + 1;
      return {};
    }
    reason = errors.text().substr(0, errors.text().find('\n'));
  } catch (const std::exception& error) {  // out of memory, or a device that failed
    reason = error.what();
  }
  for (const HeadRow& row : rows) {  // some of the rows may be there
    Pos& length = lengths_[static_cast<size_t>(row.seq)];
    length = std::max(length, row.place + 1);
  }
  return Internal(fmt::format("the head could not decode {} rows: {}", rows.size(), reason));
}

// Makes the states of those rows that have states of the target.
bool LlamaHead::Encode(std::span<const HeadRow> rows) {
  if (!encodes_) return true;
  features_.clear();
  for (const HeadRow& row : rows) {
    if (row.from_target) features_.insert(features_.end(), row.state.begin(), row.state.end());
  }
  if (features_.empty()) return true;
  // An encoder gives outputs for all rows.
  const size_t feature_size =
      std::find_if(rows.begin(), rows.end(), [](const HeadRow& row) { return row.from_target; })->state.size();
  std::vector<float> encoded;
  for (size_t at = 0; at < features_.size(); at += static_cast<size_t>(info_.max_outputs) * feature_size) {
    const size_t count = std::min((features_.size() - at) / feature_size, static_cast<size_t>(info_.max_outputs));
    llama_batch batch{};
    batch.n_tokens = static_cast<int32_t>(count);
    batch.embd = features_.data() + at;
    if (llama_encode(context_.get(), batch) != 0) return false;
    const float* states = llama_get_embeddings_nextn(context_.get());
    if (states == nullptr) return false;
    encoded.insert(encoded.end(), states, states + count * state_size_);
  }
  auto next = encoded.begin();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].from_target) continue;
    std::copy_n(next, state_size_, states_.begin() + static_cast<std::ptrdiff_t>(i * state_size_));
    next += static_cast<std::ptrdiff_t>(state_size_);
  }
  return true;
}

bool LlamaHead::DecodeRows(std::span<const HeadRow> rows, bool wants_outputs) {
  tokens_.clear();
  positions_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    // The target's vocabulary may be larger; a token the head does not have is replaced by its last one, which can only
    // make the draft wrong.
    tokens_.push_back(std::min(rows[i].token, info_.n_vocab - 1));
    positions_.push_back(rows[i].place);
    sequences_[i] = rows[i].seq;
  }
  wants_outputs_.assign(rows.size(), wants_outputs ? 1 : 0);
  llama_batch batch{};
  batch.n_tokens = static_cast<int32_t>(rows.size());
  batch.token = tokens_.data();
  batch.embd = states_.data();
  batch.pos = positions_.data();
  batch.n_seq_id = sequence_counts_.data();
  batch.seq_id = sequence_pointers_.data();
  batch.logits = wants_outputs_.data();
  return llama_decode(context_.get(), batch) == 0;
}

std::span<const float> LlamaHead::Logits(int row) {
  const float* logits = llama_get_logits_ith(context_.get(), row);
  assert(logits != nullptr && "the row gave no outputs");
  return {logits, static_cast<size_t>(info_.n_vocab)};
}

std::span<const float> LlamaHead::State(int row) {
  const float* state = llama_get_embeddings_nextn_ith(context_.get(), row);
  assert(state != nullptr && "the row gave no outputs");
  return {state, state_size_};
}

void LlamaHead::TruncateTo(SeqId seq, Pos length) {
  Pos& now = lengths_[static_cast<size_t>(seq)];
  if (length >= now) return;
  llama_memory_seq_rm(llama_get_memory(context_.get()), seq, length, -1);
  now = length;
}

}  // namespace outrider
