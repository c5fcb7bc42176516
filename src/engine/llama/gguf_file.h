// GgufFile: what a GGUF file says, read with ggml's parser: its metadata and the shapes of its tensors, not their
// values.
#pragma once

#include <gguf.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/free_with.h"
#include "base/utf8.h"

namespace outrider {

// A name or a text from a file, for a message: the file may come from anybody.
inline std::string Shown(std::string_view text) {
  constexpr size_t kMaxBytes = 100;
  return OneLine(text, kMaxBytes);
}

class GgufFile {
 public:
  explicit GgufFile(const std::string& path) {
    std::array<char, 4> magic{};
    if (!std::ifstream(path, std::ios::binary).read(magic.data(), magic.size())) return;
    if (std::string_view(magic.data(), magic.size()) != "GGUF") return;
    ggml_context* tensors = nullptr;
    file_.reset(gguf_init_from_file(path.c_str(), {true, &tensors}));
    tensors_.reset(tensors);
  }

  bool ok() const { return file_ != nullptr && tensors_ != nullptr; }

  std::string Text(const char* key) const {
    const int64_t at = gguf_find_key(file_.get(), key);
    return at >= 0 && gguf_get_kv_type(file_.get(), at) == GGUF_TYPE_STRING ? gguf_get_val_str(file_.get(), at) : "";
  }

  std::optional<int64_t> Number(const std::string& key) const {
    const int64_t at = gguf_find_key(file_.get(), key.c_str());
    if (at < 0) return std::nullopt;
    switch (gguf_get_kv_type(file_.get(), at)) {
      case GGUF_TYPE_UINT32:
        return gguf_get_val_u32(file_.get(), at);
      case GGUF_TYPE_INT32:
        return gguf_get_val_i32(file_.get(), at);
      case GGUF_TYPE_UINT16:
        return gguf_get_val_u16(file_.get(), at);
      default:
        return std::nullopt;
    }
  }

  // Empty if it is not an array of such numbers.
  std::vector<int64_t> Numbers(const char* key) const {
    const int64_t at = gguf_find_key(file_.get(), key);
    if (at < 0 || gguf_get_kv_type(file_.get(), at) != GGUF_TYPE_ARRAY) return {};
    const gguf_type type = gguf_get_arr_type(file_.get(), at);
    if (type != GGUF_TYPE_UINT32 && type != GGUF_TYPE_INT32) return {};
    const auto* values = static_cast<const int32_t*>(gguf_get_arr_data(file_.get(), at));
    return {values, values + gguf_get_arr_n(file_.get(), at)};
  }

  int64_t ArraySize(const char* key) const {
    const int64_t at = gguf_find_key(file_.get(), key);
    const bool array = at >= 0 && gguf_get_kv_type(file_.get(), at) == GGUF_TYPE_ARRAY;
    return array ? static_cast<int64_t>(gguf_get_arr_n(file_.get(), at)) : 0;
  }

  bool Has(const char* key) const { return gguf_find_key(file_.get(), key) >= 0; }

  // Whether there is no such key, or it has a value of this type: libllama aborts if it has another.
  bool MayBe(gguf_type type, const char* key) const {
    const int64_t at = gguf_find_key(file_.get(), key);
    return at < 0 || gguf_get_kv_type(file_.get(), at) == type;
  }

  std::vector<const ggml_tensor*> Tensors() const {
    std::vector<const ggml_tensor*> all;
    for (int64_t i = 0; i < gguf_get_n_tensors(file_.get()); ++i)
      all.push_back(Tensor(gguf_get_tensor_name(file_.get(), i)));
    return all;
  }

  // Null if there is none.
  const ggml_tensor* Tensor(const std::string& name) const { return ggml_get_tensor(tensors_.get(), name.c_str()); }

  size_t OffsetInFile(const std::string& tensor) const {
    const int64_t at = gguf_find_tensor(file_.get(), tensor.c_str());
    return gguf_get_data_offset(file_.get()) + gguf_get_tensor_offset(file_.get(), at);
  }

 private:
  std::unique_ptr<gguf_context, FreeWith<gguf_free>> file_;
  std::unique_ptr<ggml_context, FreeWith<ggml_free>> tensors_;
};

}  // namespace outrider
