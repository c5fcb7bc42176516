#include "engine/llama/llama_adapter.h"

#include <fmt/format.h>
#include <ggml-backend.h>

#include <array>

#include "base/hash.h"
#include "engine/llama/adapter_tiles.h"
#include "engine/llama/backend.h"
#include "engine/llama/width_probe.h"
#include "kernels/device_kernels.h"

namespace outrider {
namespace {

// Whether rows of ggml's products with weights of this type do not depend on each other.
bool RowsOfGgmlAreIndependent(ggml_type type, const std::string& device) {
  if (device.empty()) return RowsAreIndependent(type, WeightLayout::kPlain);
  ggml_backend_dev_t other = ggml_backend_dev_by_name(device.c_str());
  return other != nullptr && kernels::device::InUse() && kernels::device::HasProduct(type) &&
         RowsAreIndependentOn(other, type);
}

std::string Caveat(const LlamaAdapter& adapter, const std::string& device) {
  for (const ggml_type type : TypesNotInTiles(*adapter.handle)) {
    if (RowsOfGgmlAreIndependent(type, device)) continue;
    return fmt::format("results of the {} weights of adapter '{}' depend on the number of rows", ggml_type_name(type),
                       adapter.info.path);
  }
  return "";
}

}  // namespace

Result<LlamaAdapter> LoadAdapter(llama_model* model, const std::string& path, const AdapterTarget& target,
                                 const std::string& device, bool our_kernels) {
  if (Status status = CheckAdapterFile(path, target); !status.ok()) return status;
  ErrorLogCapture errors;
  LlamaAdapter adapter;
  adapter.handle.reset(llama_adapter_lora_init(model, path.c_str()));
  if (adapter.handle == nullptr) {
    if (errors.text().find("not within the file bounds") != std::string::npos) {
      return InvalidArgument(fmt::format("adapter '{}' is cut short or damaged: download it again", path));
    }
    const std::string reason = errors.text().substr(0, errors.text().find('\n'));
    return InvalidArgument(fmt::format("adapter '{}' cannot be loaded: {}", path, reason));
  }
  if (our_kernels) PutInTiles(adapter.handle.get());
  const auto text = [&](const char* key) {
    std::array<char, 4096> value{};
    const bool given = llama_adapter_meta_val_str(adapter.handle.get(), key, value.data(), value.size()) >= 0;
    return std::string(given ? value.data() : "");
  };
  adapter.info = {path, text("adapter.lora.task_name"), text("adapter.lora.prompt_prefix"), HashFile(path).hash()};
  adapter.caveat = Caveat(adapter, device);
  return adapter;
}

}  // namespace outrider
