// Any bytes as the file of a head: refused with one sentence, or something that fits its target. The checks must not
// take anything for granted, because libllama aborts the process if a head does not fit.
#include <ggml.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/file.h"
#include "engine/llama/head_file.h"
#include "require.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ggml_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;
  File file(memfd_create("head", 0));
  Require(file.is_open() && file.Write({reinterpret_cast<const char*>(data), size}), "a file in memory");
  const std::string path = "/proc/self/fd/" + std::to_string(file.descriptor());
  const std::string architecture = FileArchitecture(path);
  const Status alone = CheckIsNoHead(path);
  Require(alone.ok() == (architecture != "eagle3" && architecture != "dflash" && architecture != "gemma4-assistant"),
          "heads, and nothing else, are refused as models");
  const Status fits = CheckEagle3File(path, {.layers = 5, .embedding_size = 64, .vocabulary_size = 4});
  if (architecture != "" && architecture != "eagle3") Require(!fits.ok(), "another model is not a head");
  if (!fits.ok()) {
    Require(fits.code() == StatusCode::kInvalidArgument && !fits.message().empty(), "a sentence that says why not");
    Require(fits.message().find('\n') == std::string::npos, "one sentence");
  }
  if (FileHasMtpHead(path)) Require(!architecture.empty(), "a model that says what it is");
  return 0;
}
