// Any bytes as a line of `outrider states --in`: refused with a reason, or tokens of the vocabulary.
#include <string_view>

#include "apps/states_file.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;
  constexpr int kVocabulary = 1000;
  const auto tokens = ParseTokenLine({reinterpret_cast<const char*>(data), size}, kVocabulary);
  if (!tokens.ok()) {
    Require(tokens.status().code() == StatusCode::kInvalidArgument, "bad input is the user's");
    Require(!tokens.status().message().empty(), "there is a reason");
    return 0;
  }
  Require(!tokens->empty(), "there are tokens");
  for (const Token token : *tokens) Require(token >= 0 && token < kVocabulary, "the model knows them");
  return 0;
}
