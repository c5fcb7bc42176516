#include "drafters/lookup.h"

#include <algorithm>

#include "drafters/hash_index.h"

namespace outrider {

Continuation::Continuation(Proposal& proposal) : proposal_(proposal) {
  for (const DraftToken& token : proposal.draft.tokens) survival_ *= token.confidence;
}

uint64_t Continuation::HashLast(size_t count) const {
  NgramHash hash(count);
  for (size_t i = length() - count; i < length(); ++i) hash.Add((*this)[i]);
  return hash.value();
}

void Continuation::CopyLast(std::span<Token> to) const {
  const size_t first = length() - to.size();
  for (size_t i = 0; i < to.size(); ++i) to[i] = (*this)[first + i];
}

bool Continuation::Append(Token token, float confidence) {
  const double survival = survival_ * confidence;
  if (room() <= 0 || confidence < proposal_.p_min || survival < proposal_.min_survival) return false;
  Draft& draft = proposal_.draft;
  // The distributions must be as long as the draft: a token that was looked up was proposed with probability 1.
  if (!draft.distributions.empty()) draft.distributions.push_back({{token, 1.0f}});
  draft.tokens.push_back({token, confidence, kNoDrafter});
  survival_ = survival;
  return true;
}

float MatchConfidence(int64_t agreed, int64_t seen, int matched) {
  constexpr double kPriorWeight = 2;  // in observations: how much the length of the match counts
  const double prior = (matched + 1.0) / (matched + 2.0);
  return static_cast<float>((static_cast<double>(agreed) + kPriorWeight * prior) /
                            (static_cast<double>(seen) + kPriorWeight));
}

void LookupDrafter::Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) {
  Open(seq, context, history.size());
  read_[static_cast<size_t>(seq)] = 0;
  Read(seq, history);
}

void LookupDrafter::Commit(SeqId seq, const CommittedStep& step) {
  Read(seq, step.history);
}

void LookupDrafter::Propose(std::span<Proposal*> proposals) {
  for (Proposal* proposal : proposals) {
    Continuation text(*proposal);
    if (text.room() > 0) Extend(proposal->seq, text);
  }
}

void LookupDrafter::End(SeqId seq, std::span<const Token> history, bool complete) {
  Close(seq, history, complete);
  read_[static_cast<size_t>(seq)] = 0;
}

void LookupDrafter::Read(SeqId seq, std::span<const Token> history) {
  size_t& read = read_[static_cast<size_t>(seq)];
  read = std::min(read, history.size());
  for (; read < history.size(); ++read) Learn(seq, history, read);
}

}  // namespace outrider
