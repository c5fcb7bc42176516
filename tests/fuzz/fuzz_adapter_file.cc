// Any bytes as the file of an adapter: refused with one sentence, or something that fits its model. The checks must not
// take anything for granted, because libllama aborts the process if an adapter does not fit.
#include <ggml.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/file.h"
#include "engine/llama/adapter_file.h"
#include "require.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ggml_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;
  File file(memfd_create("adapter", 0));
  Require(file.is_open() && file.Write({reinterpret_cast<const char*>(data), size}), "a file in memory");
  const std::string path = "/proc/self/fd/" + std::to_string(file.descriptor());
  const AdapterTarget target = {"llama",
                                {{"token_embd.weight", {64, 8, 1, 1}},
                                 {"output.weight", {64, 8, 1, 1}},
                                 {"blk.0.attn_q.weight", {64, 32, 1, 1}},
                                 {"blk.0.ffn_up_exps.weight", {64, 32, 4, 1}}},
                                {}};
  const Status fits = CheckAdapterFile(path, target);
  Require(CheckAdapterFile(path, {"qwen2", target.weights, {}}).ok() == false || !fits.ok(),
          "it fits one architecture");
  if (fits.ok()) {
    Require(!CheckAdapterFile(path, {"llama", {}, {}}).ok(), "a model without its weights is another one");
  } else {
    Require(!fits.message().empty() && fits.message().find('\n') == std::string::npos,
            "one sentence that says why not");
  }
  return 0;
}
