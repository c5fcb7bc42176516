// The texts of `outrider check`: continued with drafts, and compared, token by token, with plain decoding.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "drafters/speculator.h"
#include "engine/engine.h"
#include "engine/tokenizer.h"
#include "sampling/filter.h"

namespace outrider {

struct Continuations {
  std::vector<std::vector<Token>> tokens;  // of each text
  int drafted = 0, accepted = 0;
};

// Continues all texts of check_texts.h side by side; `speculator` null = without drafts.
Result<Continuations> ContinueTexts(Engine& engine, const Tokenizer& tokenizer, FilterFactory& filters,
                                    std::unique_ptr<Speculator> speculator, float temperature,
                                    const AdapterSet& adapters = {});

// Where they differ, as a clause; "" if they do not.
std::string FirstDifference(const Continuations& plain, const Continuations& drafted);

}  // namespace outrider
