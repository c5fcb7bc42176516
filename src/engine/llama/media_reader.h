// MediaReader with libmtmd and a projector file (--mmproj).
//
// A picture is decoded and cut on the caller's thread, one at a time, which takes milliseconds. Its rows are computed
// on a thread of lower priority, one part at a time, so that running requests go on. Each part is computed alone, so
// its rows do not depend on others. They are kept for a while, for the next turns of a conversation.
#pragma once

#include <mtmd.h>

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

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
  Result<std::vector<MediaPiece>> Read(std::string_view file, MediaKind kind, const std::string& owner) override;

 private:
  using Values = std::shared_ptr<const std::vector<float>>;
  using Chunks = std::shared_ptr<const mtmd_input_chunks>;
  class Rows;

  struct Kept {
    std::string owner;
    MediaId id;
    Values values;
  };

  LlamaMediaReader(std::shared_ptr<LlamaModel> model, mtmd_context* context, int width);
  Result<Chunks> Cut(const mtmd_bitmap& bitmap) const;
  Result<Values> Compute(const MediaId& id, const mtmd_input_chunk& chunk, const std::string& owner);
  Result<Values> ComputeNow(const mtmd_input_chunk& chunk) const;
  Values FindKept(const MediaId& id, const std::string& owner);
  void Keep(Kept kept);

  struct Free {
    void operator()(mtmd_context* context) const { mtmd_free(context); }
  };
  const std::shared_ptr<LlamaModel> model_;
  const std::unique_ptr<mtmd_context, Free> context_;
  const size_t width_;  // numbers of a row

  std::atomic<int> waiting_ = 0;  // for computing_, and the one that has it
  std::mutex decoding_;           // held while a file is decoded, which may take some hundred megabytes
  std::mutex computing_;          // guards what follows and the context's buffers
  std::list<Kept> kept_;          // latest use first
  size_t kept_bytes_ = 0;
};

}  // namespace outrider
