// MediaReader with libmtmd and a projector file (--mmproj).
//
// Read only looks at the size of a picture. Its rows are computed when the request asks for them: the file is decoded,
// cut, and each part computed alone, so that its rows do not depend on others. That is done for one picture at a time,
// on a thread of lower priority, so that running requests go on and the pixels of one picture are in memory at most.
// Rows are kept for a while, for the next turns of a conversation.
#pragma once

#include <mtmd.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/fair_cache.h"
#include "base/fair_mutex.h"
#include "engine/llama/llama_model.h"
#include "engine/media.h"
#include "engine/model_options.h"

namespace outrider {

class LlamaMediaReader : public MediaReader {
 public:
  // One sentence if the file is no projector, or not one for this model, or if the two need more than this server can
  // do without changing texts.
  static Result<std::unique_ptr<LlamaMediaReader>> Load(std::shared_ptr<LlamaModel> model, const MediaOptions& options);

  bool Reads(MediaKind kind) const override;
  Result<std::vector<MediaPiece>> Read(std::shared_ptr<const std::string> file, MediaKind kind,
                                       const std::string& owner) override;
  Result<std::shared_ptr<const void>> Hold(const std::string& owner, Pos rows) override;

 private:
  using Values = std::shared_ptr<const std::vector<float>>;
  using Chunks = std::shared_ptr<const mtmd_input_chunks>;
  class Rows;
  class Upload;

  // A part of a picture that is computed.
  struct Part {
    size_t chunk;  // its place among the picture's chunks
    MediaId id;
    size_t rows;
    Values values = nullptr;  // null = not there yet
  };
  struct KeptRows {
    MediaId id;
    Values values;
  };

  LlamaMediaReader(std::shared_ptr<LlamaModel> model, mtmd_context* context, int width);
  Result<Chunks> Cut(const mtmd_bitmap& bitmap) const;
  Result<Chunks> DecodeAndCut(const std::string& file) const;
  Result<Chunks> LayOut(const std::string& file) const;
  Status Compute(const std::string& file, const std::string& owner, const StillWanted& wanted,
                 std::vector<Part>* parts);
  Status ComputeMissing(const std::string& file, const std::string& owner, const StillWanted& wanted,
                        std::vector<Part>* parts);
  Result<Values> ComputeChunk(const mtmd_input_chunk& chunk) const;
  bool FindKept(const std::string& owner, std::vector<Part>* parts);
  void Keep(const std::string& owner, const Part& part);

  struct Free {
    void operator()(mtmd_context* context) const { mtmd_free(context); }
  };
  const std::shared_ptr<LlamaModel> model_;
  const std::unique_ptr<mtmd_context, Free> context_;
  const size_t width_;  // numbers of a row
  MediaMemory memory_;

  FairMutex computing_;  // guards the context's buffers, and the memory that pixels take
  std::mutex kept_mutex_;
  FairCache<KeptRows> kept_;  // guarded by kept_mutex_
};

}  // namespace outrider
