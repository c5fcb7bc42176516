#include "engine/llama/media_reader.h"

#include <fmt/format.h>
#include <gguf.h>
#include <openssl/sha.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <utility>

#include "base/free_with.h"
#include "engine/llama/backend.h"
#include "engine/llama/picture.h"

namespace outrider {
namespace {

constexpr size_t kMaxKeptBytes = size_t{256} << 20;  // of computed rows
constexpr int kMaxWaiting = 32;
constexpr int kNiceness = 5;  // beside threads of priority 0 a thread gets a quarter of a core

// "" if the file is no GGUF file of a projector.
std::string ProjectorType(const std::string& path) {
  std::array<char, 4> magic{};
  if (!std::ifstream(path, std::ios::binary).read(magic.data(), magic.size())) return "";
  if (std::string_view(magic.data(), magic.size()) != "GGUF") return "";
  const std::unique_ptr<gguf_context, FreeWith<gguf_free>> file(gguf_init_from_file(path.c_str(), {true, nullptr}));
  if (file == nullptr) return "";
  for (const char* key : {"clip.projector_type", "clip.vision.projector_type", "clip.audio.projector_type"}) {
    const int64_t at = gguf_find_key(file.get(), key);
    if (at >= 0 && gguf_get_kv_type(file.get(), at) == GGUF_TYPE_STRING) return gguf_get_val_str(file.get(), at);
  }
  return "";
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

MediaId Hash(std::string_view bytes) {
  MediaId id;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), id.data());
  return id;
}

MediaId IdOfPart(const MediaId& file, size_t part) {
  std::string text(file.begin(), file.end());
  return Hash(text + std::to_string(part));
}

// Runs `work` on a thread of lower priority, which the threads that it starts inherit, and waits for it.
template <typename Work>
void RunInBackground(Work work) {
  std::thread([&] {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);  // on Linux, of this thread only
    work();
  }).join();
}

// Why pictures could not be read as the model was trained to, or not without changing texts; "" if they can.
std::string Obstacle(const mtmd_context* context) {
  if (mtmd_decode_use_mrope(context)) {
    return "the model counts the positions of a picture in several dimensions (M-RoPE), which this server cannot yet";
  }
  if (mtmd_decode_use_non_causal(context, nullptr)) {
    return "the model reads all rows of a picture at once (attention that is not causal), which this server cannot yet";
  }
  return "";
}

}  // namespace

// Rows of one chunk. The chunk, which holds the picture's pixels, is dropped when they have been computed.
class LlamaMediaReader::Rows : public MediaRows {
 public:
  Rows(const MediaId& id, LlamaMediaReader& reader, Chunks chunks, const mtmd_input_chunk& chunk, std::string owner)
      : MediaRows(id, static_cast<Pos>(mtmd_input_chunk_get_n_tokens(&chunk))),
        reader_(reader),
        chunks_(std::move(chunks)),
        chunk_(chunk),
        owner_(std::move(owner)) {}

  Status Compute() override {
    const std::lock_guard lock(mutex_);
    if (values_ != nullptr) return {};
    Result<Values> values = reader_.Compute(id(), chunk_, owner_);
    if (!values.ok()) return values.status();
    values_ = std::move(*values);
    chunks_.reset();
    return {};
  }

  const float* Row(Pos row) const override { return values_->data() + static_cast<size_t>(row) * reader_.width_; }

 private:
  LlamaMediaReader& reader_;
  std::mutex mutex_;
  Chunks chunks_;
  const mtmd_input_chunk& chunk_;  // one of them
  const std::string owner_;
  Values values_;  // written under mutex_; whoever reads it has called Compute before
};

LlamaMediaReader::LlamaMediaReader(std::shared_ptr<LlamaModel> model, mtmd_context* context, int width)
    : model_(std::move(model)), context_(context), width_(static_cast<size_t>(width)) {}

Result<std::unique_ptr<LlamaMediaReader>> LlamaMediaReader::Load(std::shared_ptr<LlamaModel> model,
                                                                 const MediaOptions& options) {
  const std::string type = ProjectorType(options.path);
  if (type.empty()) {
    return InvalidArgument(fmt::format("--mmproj {} is not a projector in a GGUF file", options.path));
  }
  ggml_log_callback log = nullptr;
  void* log_data = nullptr;
  llama_log_get(&log, &log_data);
  mtmd_log_set(log, log_data);
  mtmd_context_params params = mtmd_context_params_default();
  params.use_gpu = options.offload && model->on_device();
  params.print_timings = false;
  params.n_threads = options.threads > 0 ? options.threads : PhysicalCores();
  params.image_min_tokens = options.min_tokens;
  params.image_max_tokens = options.max_tokens;
  ErrorLogCapture errors;
  mtmd_context* context = mtmd_init_from_file(options.path.c_str(), model->handle(), params);
  if (context == nullptr) {
    std::string reason = FirstLine(errors.text());
    return InvalidArgument(fmt::format("--mmproj {} cannot be used with this model: {}", options.path, reason));
  }
  const int width = llama_model_n_embd_inp(model->handle());
  std::unique_ptr<LlamaMediaReader> reader(new LlamaMediaReader(std::move(model), context, width));
  if (const std::string obstacle = Obstacle(context); !obstacle.empty()) {
    return Unsupported(
        fmt::format("--mmproj {}, a projector of type {}, cannot be used: {}", options.path, type, obstacle));
  }
  // A picture without content tells whether the vocabulary has the tokens that are put around one.
  if (mtmd_support_vision(context)) {
    constexpr uint32_t kSide = 64;
    const mtmd::bitmap_ptr nothing(mtmd_bitmap_init(kSide, kSide, nullptr));
    if (const auto cut = reader->Cut(*nothing); !cut.ok()) {
      return InvalidArgument(fmt::format("--mmproj {}, a projector of type {}, is not for this model: {}", options.path,
                                         type, cut.status().message()));
    }
  }
  return reader;
}

bool LlamaMediaReader::Reads(MediaKind kind) const {
  return kind == MediaKind::kImage && mtmd_support_vision(context_.get());
}

Result<std::vector<MediaPiece>> LlamaMediaReader::Read(std::string_view file, MediaKind kind,
                                                       const std::string& owner) {
  if (!Reads(kind)) return Unsupported("the projector (--mmproj) does not read files of this kind");
  const MediaId file_id = Hash(file);
  Result<Chunks> cut = Internal("not cut");
  {
    const std::lock_guard lock(decoding_);
    const Result<Picture> picture = DecodePicture(file);
    if (!picture.ok()) return picture.status();
    const mtmd::bitmap_ptr bitmap(mtmd_bitmap_init(picture->width, picture->height, picture->rgb.get()));
    cut = Cut(*bitmap);
  }
  if (!cut.ok()) return cut.status();
  std::vector<MediaPiece> pieces;
  for (size_t i = 0; i < mtmd_input_chunks_size(cut->get()); ++i) {
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(cut->get(), i);
    MediaPiece& piece = pieces.emplace_back();
    if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
      size_t count = 0;
      const llama_token* tokens = mtmd_input_chunk_get_tokens_text(chunk, &count);
      piece.tokens.assign(tokens, tokens + count);
    } else {
      piece.rows = std::make_shared<Rows>(IdOfPart(file_id, i), *this, *cut, *chunk, owner);
    }
  }
  return pieces;
}

// The chunks of a picture, all of which the model can read.
Result<LlamaMediaReader::Chunks> LlamaMediaReader::Cut(const mtmd_bitmap& bitmap) const {
  const Chunks chunks(mtmd_input_chunks_init(), mtmd_input_chunks_free);
  const mtmd_input_part part{nullptr, &bitmap};
  const mtmd_input_part* parts[] = {&part};
  try {
    ErrorLogCapture errors;
    auto* out = const_cast<mtmd_input_chunks*>(chunks.get());
    if (mtmd_tokenize_from_parts(context_.get(), out, parts, 1, /*add_special=*/false) != 0) {
      return InvalidArgument(fmt::format("the picture cannot be read: {}", FirstLine(errors.text())));
    }
  } catch (const std::exception& error) {
    return InvalidArgument(fmt::format("the picture cannot be read: {}", error.what()));
  }
  for (size_t i = 0; i < mtmd_input_chunks_size(chunks.get()); ++i) {
    size_t count = 0;
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(chunks.get(), i);
    if (mtmd_input_chunk_get_type(chunk) != MTMD_INPUT_CHUNK_TYPE_TEXT) continue;
    const llama_token* tokens = mtmd_input_chunk_get_tokens_text(chunk, &count);
    for (const llama_token token : std::span(tokens, count)) {
      if (!model_->tokenizer().Contains(token)) {
        return InvalidArgument("the vocabulary lacks tokens that the projector wants around a picture");
      }
    }
  }
  return chunks;
}

Result<LlamaMediaReader::Values> LlamaMediaReader::Compute(const MediaId& id, const mtmd_input_chunk& chunk,
                                                           const std::string& owner) {
  const int waiting = waiting_.fetch_add(1);
  const std::unique_ptr<std::atomic<int>, FreeWith<[](std::atomic<int>* count) { count->fetch_sub(1); }>> leave(
      &waiting_);
  if (waiting >= kMaxWaiting) {
    return Status(StatusCode::kResourceExhausted, "too many pictures wait to be computed: try again later");
  }
  const std::lock_guard lock(computing_);
  if (Values kept = FindKept(id, owner)) return kept;
  Result<Values> computed = Internal("not computed");
  try {
    RunInBackground([&] { computed = ComputeNow(chunk); });
  } catch (const std::exception& error) {  // there is no thread left
    return Unavailable(fmt::format("a picture could not be computed: {}", error.what()));
  }
  if (computed.ok()) Keep({owner, id, *computed});
  return computed;
}

Result<LlamaMediaReader::Values> LlamaMediaReader::ComputeNow(const mtmd_input_chunk& chunk) const {
  try {
    ErrorLogCapture errors;
    if (mtmd_encode_chunk(context_.get(), &chunk) != 0) {
      return Internal(fmt::format("a picture could not be computed: {}", FirstLine(errors.text())));
    }
    const float* values = mtmd_get_output_embd(context_.get());
    const size_t count = mtmd_input_chunk_get_n_tokens(&chunk) * width_;
    return Values(std::make_shared<const std::vector<float>>(values, values + count));
  } catch (const std::exception& error) {
    return Internal(fmt::format("a picture could not be computed: {}", error.what()));
  }
}

LlamaMediaReader::Values LlamaMediaReader::FindKept(const MediaId& id, const std::string& owner) {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.id == id && kept.owner == owner; });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return found->values;
}

void LlamaMediaReader::Keep(Kept kept) {
  const auto bytes = [](const Kept& one) { return one.values->size() * sizeof(float); };
  kept_bytes_ += bytes(kept);
  kept_.push_front(std::move(kept));
  while (kept_bytes_ > kMaxKeptBytes) {
    kept_bytes_ -= bytes(kept_.back());
    kept_.pop_back();
  }
}

}  // namespace outrider
