// What is known of an adapter (LoRA) that was loaded with a model.
#pragma once

#include <cstdint>
#include <string>

namespace outrider {

struct AdapterInfo {
  std::string path;
  std::string task_name;      // what its file says that it is for; "" = nothing
  std::string prompt_prefix;  // what its file says that prompts should begin with; "" = nothing
  uint64_t fingerprint = 0;   // equal for equal files, different for others
};

}  // namespace outrider
