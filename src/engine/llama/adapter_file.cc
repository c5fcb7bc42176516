#include "engine/llama/adapter_file.h"

#include <fmt/format.h>
#include <ggml.h>

#include <filesystem>
#include <string_view>

#include "engine/llama/gguf_file.h"

namespace outrider {
namespace {

constexpr std::string_view kFirst = ".lora_a", kSecond = ".lora_b";
constexpr const char* kEmbeddings = "token_embd.weight";

using Shape = std::array<int64_t, 4>;

// A change to a weight W: it becomes W + scale · B · A.
struct Pair {
  const ggml_tensor *a, *b;
};

// ggml has products with all types that it can turn into floats. It calls a null pointer for the others, among them
// quantized types that are only for intermediate results (Q8_1, Q8_K).
bool CanBeMultiplied(ggml_type type) {
  return type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float != nullptr;
}

// Whether the shapes go together with the weight's; "" if they do, else why not.
std::string CheckShapes(const Pair& pair, const Shape& weight, bool embeddings) {
  const auto size = [](const ggml_tensor* tensor, int dimension) { return tensor->ne[dimension]; };
  const bool fits = embeddings  // both lie the other way round, because rows of A are looked up by token
                        ? size(pair.b, 1) == weight[0] && size(pair.a, 1) == weight[1]
                        : size(pair.a, 0) == weight[0] && size(pair.b, 1) == weight[1];
  if (!fits) return "has another shape than the model's";
  if (size(pair.b, 0) < 1 || size(pair.a, embeddings ? 0 : 1) != size(pair.b, 0))
    return "has two parts that do not fit each other";
  for (int dimension : {2, 3}) {
    const auto wanted = weight[static_cast<size_t>(dimension)];
    if (size(pair.a, dimension) != wanted || size(pair.b, dimension) != wanted) {
      return "has another number of matrices than the model's";
    }
  }
  if (!CanBeMultiplied(pair.a->type) || !CanBeMultiplied(pair.b->type)) return "has values of an unknown type";
  return "";
}

std::string CheckWeight(const std::string& name, const Pair& pair, const AdapterTarget& target) {
  const auto weight = target.weights.find(name);
  if (weight == target.weights.end()) return "the model has no such weight: the adapter belongs to another model";
  if (pair.a == nullptr || pair.b == nullptr) return "one of its two parts is missing";
  const bool embeddings = name == kEmbeddings;
  if (embeddings && !target.weights.contains("output.weight")) {
    return "libllama cannot apply that where the embeddings are also the output layer; train the adapter without it";
  }
  if (target.nvfp4.contains(name) && name.find(".ffn_") != name.npos) {
    return "libllama cannot apply that to weights of the type NVFP4";
  }
  const std::string wrong = CheckShapes(pair, weight->second, embeddings);
  return wrong.empty() ? "" : "it " + wrong + ": the adapter belongs to another model, or is damaged";
}

Status CheckMetadata(const std::string& path, const GgufFile& file, const AdapterTarget& target) {
  const auto wrong = [&](const std::string& why) {
    return InvalidArgument(fmt::format("adapter '{}': {}", path, why));
  };
  if (file.Text("general.type") != "adapter") {
    return wrong("it is not an adapter; llama.cpp's convert_lora_to_gguf.py makes GGUF files of LoRA adapters");
  }
  if (const std::string type = file.Text("adapter.type"); type != "lora")
    return wrong(fmt::format("it is of the kind '{}'; only LoRA adapters can be applied", Shown(type)));
  const std::string architecture = file.Text("general.architecture");
  if (architecture != target.architecture) {
    return wrong(fmt::format("it is for models of the architecture {}, but this one is {}", Shown(architecture),
                             target.architecture));
  }
  if (!file.MayBe(GGUF_TYPE_FLOAT32, "adapter.lora.alpha")) return wrong("its adapter.lora.alpha is not a float");
  if (file.Has("adapter.alora.invocation_tokens")) {
    return Unsupported(
        fmt::format("adapter '{}': it is an activated LoRA, which changes the model only after certain tokens "
                    "(adapter.alora.invocation_tokens); outrider applies an adapter to whole texts",
                    path));
  }
  return {};
}

}  // namespace

Status CheckAdapterFile(const std::string& path, const AdapterTarget& target) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return InvalidArgument(fmt::format("adapter file '{}' does not exist", path));
  }
  const GgufFile file(path);
  if (!file.ok()) return InvalidArgument(fmt::format("adapter '{}' is not a GGUF file, or is damaged", path));
  if (Status status = CheckMetadata(path, file, target); !status.ok()) return status;

  std::map<std::string, Pair> pairs;
  for (const ggml_tensor* tensor : file.Tensors()) {
    const std::string name = ggml_get_name(tensor);
    if (name.ends_with(kFirst)) {
      pairs[name.substr(0, name.size() - kFirst.size())].a = tensor;
    } else if (name.ends_with(kSecond)) {
      pairs[name.substr(0, name.size() - kSecond.size())].b = tensor;
    } else if (!name.ends_with("_norm.weight")) {  // these are left out by libllama too
      return InvalidArgument(fmt::format("adapter '{}': '{}' is no part of a LoRA adapter", path, Shown(name)));
    }
  }
  if (pairs.empty()) return InvalidArgument(fmt::format("adapter '{}': it changes no weight", path));
  for (const auto& [name, pair] : pairs) {
    const std::string wrong = CheckWeight(name, pair, target);
    if (!wrong.empty())
      return InvalidArgument(fmt::format("adapter '{}': it changes '{}': {}", path, Shown(name), wrong));
  }
  return {};
}

}  // namespace outrider
