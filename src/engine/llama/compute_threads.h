// ggml's threads: which CPUs they compute on, and how. CpuOptions as parameters of a pool, and the pool itself.
#pragma once

#include <ggml.h>

#include "base/status.h"
#include "engine/model_options.h"

namespace outrider {

// What `options` leave open is taken from `others`.
CpuOptions Inherit(CpuOptions options, const CpuOptions& others);

// A sentence naming the flag if the mask or the range is not one, or names no CPU that there can be.
Result<ggml_threadpool_params> ThreadPoolParams(const CpuOptions& options, int threads);

// A pool of threads, which engines may share as long as only one of them computes at a time.
class ComputeThreads {
 public:
  explicit ComputeThreads(const ggml_threadpool_params& params);
  ~ComputeThreads();
  ComputeThreads(const ComputeThreads&) = delete;
  ComputeThreads& operator=(const ComputeThreads&) = delete;

  bool Matches(const ggml_threadpool_params& params) const { return ggml_threadpool_params_match(&params_, &params); }
  ggml_threadpool_t handle() const { return handle_; }

 private:
  ggml_threadpool_params params_;
  ggml_threadpool_t handle_;
};

}  // namespace outrider
