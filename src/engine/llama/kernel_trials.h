// Which kernels are faster on this machine, ours or ggml's, for each type of weights. This is measured once and kept
// for the next starts. It must be kept, because for some types the results of the two differ in the last bits, and a
// text must not depend on which kernels were faster at the last start.
#pragma once

#include <ggml.h>

#include <map>
#include <string>

namespace outrider {

class KernelTrials {
 public:
  // `path`: the file in which results for this CPU and build are kept; "" = they are not kept.
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
