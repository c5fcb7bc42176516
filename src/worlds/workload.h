// Workload: answers of a target, and what each drafter says at every position of them. Recorded once by
// `outrider bench --record`, replayed over any machine.
//
// As text: one JSON object per line. The first names the workload and its drafters; each of the others is an answer.
// The draft at a position is a string: the first character is the number of its tokens that are right until the first
// wrong one, and each of the others is the confidence of a token. Characters stand for 0 … 63, and confidences are
// rounded in their log odds, by at most 0.08.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "worlds/world.h"

namespace outrider {

struct RecordedDraft {
  int right = 0;                   // tokens until the first wrong one
  std::vector<float> confidences;  // of all its tokens

  static constexpr int kMaxTokens = 63;
};

struct RecordedAnswer {
  std::string category;
  int prompt_tokens = 0;
  std::vector<std::vector<RecordedDraft>> drafts;  // by drafter, by position of the answer

  int tokens() const { return drafts.empty() ? 0 : static_cast<int>(drafts[0].size()); }
};

struct Workload {
  std::string name;
  std::vector<std::string> drafters;
  std::vector<RecordedAnswer> answers;
};

std::string DumpWorkload(const Workload& workload);
Result<Workload> ParseWorkload(std::string_view text);

// The answer as a request of a world with the drafters of these names; those that the workload does not have say
// nothing. `answer` must outlive the result.
WorldRequest RequestFrom(const Workload& workload, const RecordedAnswer& answer,
                         const std::vector<WorldDrafter>& drafters);

}  // namespace outrider
