// Which kernels are faster here, ours or ggml's, by type of weights: tried out once, and kept for the next start. Kept,
// because for some types the last bits differ between the two: a text must not depend on which was faster this morning.
#pragma once

#include <ggml.h>

#include <map>
#include <string>

namespace outrider {

class KernelTrials {
 public:
  // `path`: the file results are kept in, for this CPU and build; "" = they are not kept.
  explicit KernelTrials(std::string path);

  bool OursFor(ggml_type type);
  bool OursForAttention();

 private:
  template <typename Try>
  bool Known(const std::string& name, Try ours_are_faster);

  std::string path_;
  std::map<std::string, bool> ours_;
};

}  // namespace outrider
