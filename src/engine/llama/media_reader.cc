#include "engine/llama/media_reader.h"

#include <fmt/format.h>
#include <gguf.h>
#include <openssl/sha.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <new>
#include <thread>
#include <utility>

#include "base/free_with.h"
#include "engine/llama/backend.h"
#include "engine/llama/picture.h"

namespace outrider {
namespace {

constexpr uint64_t kMaxKeptBytes = uint64_t{256} << 20;  // of computed rows, for later requests
constexpr uint64_t kMaxHeldBytes = uint64_t{512} << 20;  // of the rows of requests that run or wait
constexpr std::chrono::milliseconds kWantedCheck{20};    // how often one that waits asks whether it is still wanted
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

// libmtmd catches what its code throws, and logs it.
void ThrowIfOutOfMemory(const ErrorLogCapture& errors) {
  if (errors.text().find("bad_alloc") != std::string::npos) throw std::bad_alloc();
}

Status NotWanted() {
  return Unavailable("the request has ended before its pictures were computed");
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

// A picture of a request. Its file is dropped when all of its rows have been computed.
class LlamaMediaReader::Upload {
 public:
  Upload(LlamaMediaReader& reader, std::shared_ptr<const std::string> file, std::string owner)
      : reader_(reader), file_(std::move(file)), owner_(std::move(owner)) {}

  // Only before the first Compute. Returns its index.
  size_t Add(Part part) {
    parts_.push_back(std::move(part));
    return parts_.size() - 1;
  }

  Status Compute(const StillWanted& wanted) {
    const std::lock_guard lock(mutex_);
    if (file_ == nullptr) return {};
    if (Status status = reader_.Compute(*file_, owner_, wanted, &parts_); !status.ok()) return status;
    file_.reset();
    return {};
  }

  const float* Row(size_t part, Pos row) const {
    return parts_[part].values->data() + static_cast<size_t>(row) * reader_.width_;
  }

 private:
  LlamaMediaReader& reader_;
  std::mutex mutex_;
  std::shared_ptr<const std::string> file_;
  const std::string owner_;
  std::vector<Part> parts_;  // written under mutex_; whoever reads values has called Compute before
};

// Rows of one part of it.
class LlamaMediaReader::Rows : public MediaRows {
 public:
  Rows(const MediaId& id, size_t count, std::shared_ptr<Upload> upload, size_t part)
      : MediaRows(id, static_cast<Pos>(count)), upload_(std::move(upload)), part_(part) {}

  Status Compute(const StillWanted& wanted) override { return upload_->Compute(wanted); }
  const float* Row(Pos row) const override { return upload_->Row(part_, row); }

 private:
  const std::shared_ptr<Upload> upload_;
  const size_t part_;
};

LlamaMediaReader::LlamaMediaReader(std::shared_ptr<LlamaModel> model, mtmd_context* context, int width)
    : model_(std::move(model)),
      context_(context),
      width_(static_cast<size_t>(width)),
      memory_(kMaxHeldBytes),
      kept_(kMaxKeptBytes) {}

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

Result<std::vector<MediaPiece>> LlamaMediaReader::Read(std::shared_ptr<const std::string> file, MediaKind kind,
                                                       const std::string& owner) {
  if (!Reads(kind)) return Unsupported("the projector (--mmproj) does not read files of this kind");
  const MediaId file_id = Hash(*file);
  const Result<Chunks> cut = LayOut(*file);
  if (!cut.ok()) return cut.status();
  const auto upload = std::make_shared<Upload>(*this, std::move(file), owner);
  std::vector<MediaPiece> pieces;
  for (size_t i = 0; i < mtmd_input_chunks_size(cut->get()); ++i) {
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(cut->get(), i);
    MediaPiece& piece = pieces.emplace_back();
    size_t count = 0;
    if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
      const llama_token* tokens = mtmd_input_chunk_get_tokens_text(chunk, &count);
      piece.tokens.assign(tokens, tokens + count);
    } else {
      count = mtmd_input_chunk_get_n_tokens(chunk);
      const MediaId id = IdOfPart(file_id, i);
      piece.rows = std::make_shared<Rows>(id, count, upload, upload->Add({i, id, count}));
    }
  }
  return pieces;
}

Result<std::shared_ptr<const void>> LlamaMediaReader::Hold(const std::string& owner, Pos rows) {
  return memory_.Hold(owner, static_cast<uint64_t>(rows) * width_ * sizeof(float));
}

// How the picture is cut, from its size alone.
Result<LlamaMediaReader::Chunks> LlamaMediaReader::LayOut(const std::string& file) const {
  const Result<Picture> size = MeasurePicture(file);
  if (!size.ok()) return size.status();
  const mtmd::bitmap_ptr nothing(mtmd_bitmap_init(size->width, size->height, nullptr));
  return Cut(*nothing);
}

Result<LlamaMediaReader::Chunks> LlamaMediaReader::DecodeAndCut(const std::string& file) const {
  mtmd::bitmap_ptr bitmap;
  {
    const Result<Picture> picture = DecodePicture(file);
    if (!picture.ok()) return picture.status();
    bitmap.reset(mtmd_bitmap_init(picture->width, picture->height, picture->rgb.get()));
  }
  return Cut(*bitmap);
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
      ThrowIfOutOfMemory(errors);
      return InvalidArgument(fmt::format("the picture cannot be read: {}", FirstLine(errors.text())));
    }
  } catch (const std::bad_alloc&) {
    throw;
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

Status LlamaMediaReader::Compute(const std::string& file, const std::string& owner, const StillWanted& wanted,
                                 std::vector<Part>* parts) {
  if (FindKept(owner, parts)) return {};
  if (!computing_.LockWhile(wanted, kWantedCheck)) return NotWanted();
  const std::lock_guard lock(computing_, std::adopt_lock);
  if (FindKept(owner, parts)) return {};  // another request may have had the same picture
  Status status = Internal("not computed");
  try {
    RunInBackground([&] { status = ComputeMissing(file, owner, wanted, parts); });
  } catch (const std::exception& error) {  // there is no thread left
    return Unavailable(fmt::format("a picture could not be computed: {}", error.what()));
  }
  return status;
}

// Under computing_.
Status LlamaMediaReader::ComputeMissing(const std::string& file, const std::string& owner, const StillWanted& wanted,
                                        std::vector<Part>* parts) {
  try {
    if (!wanted()) return NotWanted();
    const Result<Chunks> cut = DecodeAndCut(file);
    if (!cut.ok()) return cut.status();
    for (Part& part : *parts) {
      if (part.values != nullptr) continue;
      if (!wanted()) return NotWanted();
      const bool there = part.chunk < mtmd_input_chunks_size(cut->get());
      const mtmd_input_chunk* chunk = there ? mtmd_input_chunks_get(cut->get(), part.chunk) : nullptr;
      const bool as_planned = there && mtmd_input_chunk_get_type(chunk) != MTMD_INPUT_CHUNK_TYPE_TEXT &&
                              mtmd_input_chunk_get_n_tokens(chunk) == part.rows;
      if (!as_planned) return Internal("a picture was cut in another way than its size lets expect");
      Result<Values> values = ComputeChunk(*chunk);
      if (!values.ok()) return values.status();
      part.values = std::move(*values);
      Keep(owner, part);
    }
    return {};
  } catch (const std::bad_alloc&) {
    return Unavailable("there is not enough memory for a picture");
  } catch (const std::exception& error) {
    return Internal(fmt::format("a picture could not be computed: {}", error.what()));
  }
}

Result<LlamaMediaReader::Values> LlamaMediaReader::ComputeChunk(const mtmd_input_chunk& chunk) const {
  ErrorLogCapture errors;
  if (mtmd_encode_chunk(context_.get(), &chunk) != 0) {
    ThrowIfOutOfMemory(errors);
    return Internal(fmt::format("a picture could not be computed: {}", FirstLine(errors.text())));
  }
  const float* values = mtmd_get_output_embd(context_.get());
  const size_t count = mtmd_input_chunk_get_n_tokens(&chunk) * width_;
  return Values(std::make_shared<const std::vector<float>>(values, values + count));
}

// Fills in the parts that are kept. Whether these are all.
bool LlamaMediaReader::FindKept(const std::string& owner, std::vector<Part>* parts) {
  const std::lock_guard lock(kept_mutex_);
  auto& entries = kept_.entries();
  bool all = true;
  for (Part& part : *parts) {
    if (part.values != nullptr) continue;
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
      return entry.owner == owner && entry.item.id == part.id;
    });
    all = all && found != entries.end();
    if (found == entries.end()) continue;
    kept_.MarkUsed(found);
    part.values = found->item.values;
  }
  return all;
}

void LlamaMediaReader::Keep(const std::string& owner, const Part& part) {
  const std::lock_guard lock(kept_mutex_);
  kept_.Add(owner, {part.id, part.values}, part.values->size() * sizeof(float));
}

}  // namespace outrider
