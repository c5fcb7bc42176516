#include "nearest_state_drafter.h"

namespace outrider {
namespace {

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i] - b[i]} * double{a[i] - b[i]};
  return sum;
}

// Whether the newest token of the history and the tokens of the draft also stand at position `at` of the history.
bool Continues(const Proposal& proposal, size_t at) {
  const std::vector<DraftToken>& draft = proposal.draft.tokens;
  if (proposal.history[at] != proposal.history.back() || at + draft.size() >= proposal.history.size()) return false;
  for (size_t i = 0; i < draft.size(); ++i) {
    if (proposal.history[at + 1 + i] != draft[i].token) return false;
  }
  return true;
}

}  // namespace

NearestStateDrafter::NearestStateDrafter(int n_sequences)
    : Drafter({.name = "nearest-state", .computes = true, .reads_hidden = true}),
      rows_(static_cast<size_t>(n_sequences)) {}

void NearestStateDrafter::Begin(SeqId seq, std::span<const Token>, const DraftContext&) {
  rows_[static_cast<size_t>(seq)].clear();
}

// Rows of a reused prefix never come, and rows may come again after a rollback.
void NearestStateDrafter::Commit(SeqId seq, const CommittedStep& step) {
  std::vector<Row>& rows = rows_[static_cast<size_t>(seq)];
  for (int i = 0; i < step.rows.count; ++i) {
    const Pos pos = step.rows.first + i;
    if (!rows.empty() && pos <= rows.back().pos) continue;
    const std::span<const float> state = step.rows.Hidden(i);
    rows.push_back({pos, {state.begin(), state.end()}});
  }
}

void NearestStateDrafter::Propose(std::span<Proposal*> proposals) {
  for (Proposal* proposal : proposals) {
    const std::vector<Row>& rows = rows_[static_cast<size_t>(proposal->seq)];
    // The newest token has no row yet: what follows it is what followed the same token after a similar row. If another
    // drafter has begun the draft, its tokens must have followed there too; what came after them is added to the draft.
    const auto newest = static_cast<Pos>(proposal->history.size()) - 1;
    if (rows.size() < 2 || rows.back().pos != newest - 1) continue;
    const Row* nearest = nullptr;
    for (const Row& row : rows) {
      if (row.pos >= newest - 1 || !Continues(*proposal, static_cast<size_t>(row.pos) + 1)) continue;
      if (nearest == nullptr || Distance(row.state, rows.back().state) <= Distance(nearest->state, rows.back().state))
        nearest = &row;
    }
    if (nearest == nullptr) continue;
    const float confidence = 1 / (1 + static_cast<float>(Distance(nearest->state, rows.back().state)));
    double survival = 1;
    const size_t begun = proposal->draft.tokens.size();
    for (size_t at = static_cast<size_t>(nearest->pos) + 2 + begun; at < proposal->history.size(); ++at) {
      if (proposal->draft.size() >= proposal->max_tokens || confidence < proposal->p_min) break;
      if (survival < proposal->min_survival) break;
      proposal->draft.tokens.push_back({proposal->history[at], confidence});
      survival *= confidence;
    }
  }
}

void NearestStateDrafter::End(SeqId seq, std::span<const Token>, bool) {
  rows_[static_cast<size_t>(seq)].clear();
}

DrafterKind NearestStateKind() {
  return {"nearest-state", "what followed where the target's hidden state was most like this one",
          [](DrafterParameters& parameters, const DrafterEnvironment& environment) -> Result<std::unique_ptr<Drafter>> {
            const int layer = parameters.Integer("layer", 1, 0, 1000);
            if (environment.target == nullptr) return Unsupported("nearest-state needs the target's hidden states");
            const Status provided = environment.target->ProvideHidden(std::span(&layer, 1));
            if (!provided.ok()) return provided;
            return std::unique_ptr<Drafter>(std::make_unique<NearestStateDrafter>(environment.n_sequences));
          }};
}

}  // namespace outrider
