#include "apps/adapter_flags.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace outrider {

void AddAdapterFlags(Flags& flags, AdapterFlags& adapters) {
  flags
      .Add("--lora", adapters.files,
           "GGUF files of LoRA adapters, comma-separated; each is applied fully unless a request says otherwise")
      ->delimiter(',');
  flags
      .Add("--lora-scaled", adapters.scaled_files,
           "FILE:SCALE of adapters that are applied with another scale than 1; their ids come after those of --lora")
      ->delimiter(',');
  flags.Switch("--lora-init-without-apply", adapters.only_load,
               "only load them: they are applied as requests and POST /lora-adapters say");
}

Result<NamedAdapters> NameAdapters(const AdapterFlags& flags) {
  NamedAdapters named;
  for (const std::string& file : flags.files) {
    named.paths.push_back(file);
    named.scales.push_back(1);
  }
  for (const std::string& text : flags.scaled_files) {
    const size_t colon = text.rfind(':');
    const std::string number = colon == text.npos ? "" : text.substr(colon + 1);
    char* end = nullptr;
    const float scale = std::strtof(number.c_str(), &end);
    if (colon == 0 || number.empty() || *end != '\0' || !std::isfinite(scale)) {
      return InvalidArgument(fmt::format("--lora-scaled '{}' is not FILE:SCALE, such as adapter.gguf:0.5", text));
    }
    named.paths.push_back(text.substr(0, colon));
    named.scales.push_back(scale);
  }
  if (flags.only_load) named.scales.assign(named.scales.size(), 0.0f);
  return named;
}

}  // namespace outrider
