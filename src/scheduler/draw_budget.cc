#include "scheduler/draw_budget.h"

#include <algorithm>
#include <chrono>

namespace outrider {
namespace {

// Draws with the grammars that people use take less, also with large vocabularies.
constexpr std::chrono::milliseconds kDear{20};
constexpr int kOthersShare = 9;  // times what a dear draw took

}  // namespace

void DrawBudget::Choose(std::vector<Sequence>& sequences, TimePoint now) const {
  Sequence* first_dear = nullptr;  // the one that has waited for longest
  bool others = false, suspects = false;
  for (Sequence& sequence : sequences) {
    sequence.resting = false;
    if (!sequence.busy()) continue;
    suspects = suspects || sequence.suspect;
    others = others || !sequence.dear;
    if (sequence.dear && (first_dear == nullptr || sequence.last_draw < first_dear->last_draw)) first_dear = &sequence;
  }
  if (!others || suspects) return;
  for (Sequence& sequence : sequences) {
    sequence.resting = sequence.busy() && sequence.dear && (now < next_dear_ || &sequence != first_dear);
  }
}

void DrawBudget::Observe(Sequence& sequence, Duration draw, Duration decode, TimePoint now) {
  sequence.last_draw = now;
  sequence.dear = draw > std::max<Duration>(kDear, decode);
  if (sequence.dear) next_dear_ = now + kOthersShare * draw;
}

}  // namespace outrider
