// The texts of `outrider check`: continued with drafts, and compared, token by token, with plain decoding.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/check_verdict.h"
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

struct TextComparison {
  Comparison result;
  std::string detail;  // a clause
};

// Compares the texts with drafts with those of plain decoding. If they are the same, but nothing was drafted, nothing
// was tested.
TextComparison CompareTexts(const Continuations& plain, const Continuations& drafted);

// Where they differ, as a clause; "" if they do not.
std::string FirstDifference(const Continuations& plain, const Continuations& drafted);

}  // namespace outrider
