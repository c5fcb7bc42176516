#include "scheduler/draw_budget.h"

#include <algorithm>
#include <chrono>

namespace outrider {
namespace {

// Draws with the grammars that people use take less, also with large vocabularies.
constexpr std::chrono::milliseconds kExpensiveDraw{20};
constexpr int kOthersShare = 9;  // times what an expensive draw took

}  // namespace

void DrawBudget::Choose(std::vector<Sequence>& sequences, TimePoint now) const {
  Sequence* first_expensive = nullptr;  // the one that has waited for longest
  bool others = false, suspects = false;
  for (Sequence& sequence : sequences) {
    sequence.resting = false;
    if (!sequence.busy()) continue;
    suspects = suspects || sequence.suspect;
    others = others || !sequence.expensive_draw;
    if (sequence.expensive_draw && (first_expensive == nullptr || sequence.last_draw < first_expensive->last_draw))
      first_expensive = &sequence;
  }
  if (!others || suspects) return;
  for (Sequence& sequence : sequences) {
    sequence.resting =
        sequence.busy() && sequence.expensive_draw && (now < next_expensive_ || &sequence != first_expensive);
  }
}

void DrawBudget::Observe(Sequence& sequence, Duration draw, Duration decode, TimePoint now) {
  sequence.last_draw = now;
  sequence.expensive_draw = draw > std::max<Duration>(kExpensiveDraw, decode);
  if (sequence.expensive_draw) next_expensive_ = now + kOthersShare * draw;
}

}  // namespace outrider
