// Any bytes as a grammar. CheckGbnf must answer quickly, and what it passes must be safe for libllama to read. There is
// no vocabulary here, so no `<text>` is a token.
#include <llama.h>

#include <string>
#include <string_view>

#include "require.h"
#include "sampling/gbnf_check.h"

namespace outrider {
namespace {

void Check(const std::string& text) {
  const Status status = CheckGbnf(text, [](std::string_view) { return false; });
  if (!status.ok()) {
    Require(status.code() == StatusCode::kInvalidArgument && status.field() == "grammar",
            "a refusal blames the grammar");
    return;
  }
  llama_sampler* sampler = llama_sampler_init_grammar(nullptr, text.c_str(), "root");
  Require(sampler != nullptr, "libllama accepts what passes");
  llama_sampler_free(sampler);
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outrider::Check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
