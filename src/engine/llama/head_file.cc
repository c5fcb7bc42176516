#include "engine/llama/head_file.h"

#include <fmt/format.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/llama/gguf_file.h"

namespace outrider {
namespace {

// Models whose heads we have tried. libllama has more, with requirements of their own that it checks by aborting.
constexpr std::array<std::string_view, 4> kMtpArchitectures = {"hy_v3", "qwen35", "qwen35moe", "qwen3next"};

// The head's own tokens as tokens of the target: every number must be one of them, for libllama writes there.
Status CheckOwnVocabulary(const std::string& path, const GgufFile& file, int64_t vocabulary_size) {
  const ggml_tensor* ids = file.Tensor("d2t");
  const auto wrong = [&](std::string_view why) {
    return InvalidArgument(fmt::format("EAGLE-3 head '{}': its list of tokens (d2t) {}", path, why));
  };
  if (ids->type != GGML_TYPE_I64 || ggml_n_dims(ids) != 1) return wrong("is not a list of 64-bit numbers");
  if (file.Tensor("output.weight") == nullptr) return wrong("needs an output layer, which is missing");
  std::ifstream bytes(path, std::ios::binary);
  bytes.seekg(static_cast<std::streamoff>(file.OffsetInFile("d2t")));
  std::array<int64_t, 1024> values{};
  for (int64_t left = ids->ne[0]; left > 0;) {
    const auto count = static_cast<size_t>(std::min<int64_t>(left, values.size()));
    if (!bytes.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(int64_t))))
      return wrong("is cut short: download the file again");
    for (size_t i = 0; i < count; ++i) {
      if (values[i] < 0 || values[i] >= vocabulary_size)
        return wrong(fmt::format("has the token {}, of a vocabulary of {}", values[i], vocabulary_size));
    }
    left -= static_cast<int64_t>(count);
  }
  return {};
}

// What the head takes from the target must fit: its embeddings of tokens and its output layer.
Status CheckTensors(const std::string& path, const GgufFile& file, int64_t width, const HeadTarget& target) {
  const int64_t vocabulary = file.ArraySize("tokenizer.ggml.tokens");
  const ggml_tensor *embeddings = file.Tensor("token_embd.weight"), *output = file.Tensor("output.weight");
  const auto wrong = [&](const std::string& why) {
    return InvalidArgument(fmt::format("EAGLE-3 head '{}': {}", path, why));
  };
  if (vocabulary <= 0) return wrong("it has no vocabulary");
  if (embeddings != nullptr && embeddings->ne[1] < vocabulary) {
    return wrong(fmt::format("it has embeddings of {} tokens, but a vocabulary of {}", embeddings->ne[1], vocabulary));
  }
  if ((embeddings == nullptr || output == nullptr) && width != target.embedding_size) {
    return wrong(
        fmt::format("it has states of {} numbers and uses weights of the model, whose states have {}: it "
                    "belongs to another model",
                    width, target.embedding_size));
  }
  if ((embeddings == nullptr || output == nullptr) && vocabulary != target.vocabulary_size) {
    return wrong(
        fmt::format("it has {} tokens and uses weights of the model, which has {}: it belongs to another model",
                    vocabulary, target.vocabulary_size));
  }
  return file.Tensor("d2t") != nullptr ? CheckOwnVocabulary(path, file, vocabulary) : Status();
}

}  // namespace

std::string FileArchitecture(const std::string& path) {
  const GgufFile file(path);
  return file.ok() ? file.Text("general.architecture") : "";
}

Status CheckIsNoHead(const std::string& path) {
  const std::string architecture = FileArchitecture(path);
  if (architecture == "eagle3") {
    return InvalidArgument(
        fmt::format("'{}' is an EAGLE-3 head, which drafts only beside its model: give it with -md", path));
  }
  if (architecture == "dflash" || architecture == "gemma4-assistant") {
    return Unsupported(fmt::format("'{}' is a draft of the kind {}, which outrider does not run", path, architecture));
  }
  return {};
}

Status CheckEagle3File(const std::string& path, const HeadTarget& target) {
  const GgufFile file(path);
  if (!file.ok()) return {};  // libllama cannot load it either, and its reason is better
  const auto wrong = [&](const std::string& why) {
    return InvalidArgument(fmt::format("EAGLE-3 head '{}': {}", path, why));
  };
  if (const std::string architecture = file.Text("general.architecture"); architecture != "eagle3")
    return InvalidArgument(fmt::format("'{}' is not an EAGLE-3 head, but {}", path,
                                       architecture.empty() ? "nothing that says what it is" : Shown(architecture)));
  const std::vector<int64_t> layers = file.Numbers("eagle3.target_layers");
  if (layers.size() != 3) return wrong("it does not name three layers of its target (eagle3.target_layers)");
  for (const int64_t layer : layers) {
    if (layer < 0 || layer > target.layers) {
      return wrong(fmt::format("it reads layer {} of its target, but the model has {}: it belongs to another model",
                               layer, target.layers));
    }
  }
  const auto hidden = file.Number("eagle3.target_hidden_size");
  if (hidden != target.embedding_size) {
    return wrong(
        fmt::format("it reads states of {} numbers, but those of the model have {}: it belongs to another "
                    "model",
                    hidden.value_or(0), target.embedding_size));
  }
  const auto width = file.Number("eagle3.embedding_length"), heads = file.Number("eagle3.attention.head_count");
  if (file.Number("eagle3.block_count") != 1) return wrong("it must have one layer (eagle3.block_count)");
  if (!width || *width <= 0 || !heads || *heads <= 0)
    return wrong("it does not say how wide its layer is (eagle3.embedding_length, eagle3.attention.head_count)");
  const int64_t usual = *width / *heads;
  if (file.Number("eagle3.attention.key_length").value_or(usual) !=
      file.Number("eagle3.attention.value_length").value_or(usual)) {
    return wrong("its keys and values differ in length (eagle3.attention.key_length)");
  }
  return CheckTensors(path, file, *width, target);
}

bool FileHasMtpHead(const std::string& path) {
  const GgufFile file(path);
  if (!file.ok()) return false;
  const std::string architecture = file.Text("general.architecture");
  if (std::find(kMtpArchitectures.begin(), kMtpArchitectures.end(), architecture) == kMtpArchitectures.end())
    return false;
  const int64_t heads = file.Number(architecture + ".nextn_predict_layers").value_or(0);
  const int64_t blocks = file.Number(architecture + ".block_count").value_or(0);
  // Several heads are a chain in hy_v3, of which the first is enough; elsewhere libllama refuses them.
  if (heads < 1 || blocks <= heads || (heads > 1 && architecture != "hy_v3")) return false;
  const std::string tensor = fmt::format("blk.{}.nextn.eh_proj.weight", blocks - heads);
  const int64_t parts = file.Number("split.count").value_or(1);
  std::array<char, 4096> prefix{}, part_path{};
  if (parts <= 1) return file.Tensor(tensor) != nullptr;
  if (llama_split_prefix(prefix.data(), prefix.size(), path.c_str(), 0, static_cast<int>(parts)) <= 0) return false;
  for (int part = static_cast<int>(parts) - 1; part >= 0; --part) {  // the last block is in the last part
    llama_split_path(part_path.data(), part_path.size(), prefix.data(), part, static_cast<int>(parts));
    if (const GgufFile each(part_path.data()); each.ok() && each.Tensor(tensor) != nullptr) return true;
  }
  return false;
}

}  // namespace outrider
