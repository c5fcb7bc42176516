#include "remote/received_draft.h"

#include <fmt/format.h>

#include "remote/protocol.h"

namespace outrider {
namespace {

Result<std::vector<TokenProbability>> ReadCandidates(const draft::v1::Candidates& message, Token vocabulary) {
  if (message.tokens_size() != message.probabilities_size() || message.tokens_size() > kMaxCandidates) {
    return InvalidArgument(
        fmt::format("{} candidates with {} probabilities", message.tokens_size(), message.probabilities_size()));
  }
  std::vector<TokenProbability> candidates;
  for (int i = 0; i < message.tokens_size(); ++i) {
    const uint32_t token = message.tokens(i);
    const float probability = message.probabilities(i);
    if (token >= static_cast<uint32_t>(vocabulary)) {
      return InvalidArgument(fmt::format("candidate {} of a vocabulary of {}", token, vocabulary));
    }
    if (!(probability >= 0 && probability <= 1)) {
      return InvalidArgument(fmt::format("a candidate of probability {}", probability));
    }
    candidates.push_back({static_cast<Token>(token), probability});
  }
  return candidates;
}

}  // namespace

Status ReceivedDraft::Receive(const draft::v1::ToClient& message, size_t sent_length) {
  if (message.base() > sent_length) {
    return InvalidArgument(fmt::format("a draft after {} tokens of a text of {}", message.base(), sent_length));
  }
  if (!wants_candidates_ && message.candidates_size() > 0) return InvalidArgument("candidates that nobody asked for");
  if (message.base() < base_) return {};  // belongs to a draft that was dropped
  const auto count = static_cast<size_t>(message.tokens_size());
  if (message.confidence().size() != count) {
    return InvalidArgument(fmt::format("{} tokens with {} confidences", count, message.confidence().size()));
  }
  if (wants_candidates_ && static_cast<size_t>(message.candidates_size()) != count) {
    return InvalidArgument(fmt::format("{} tokens with {} lists of candidates", count, message.candidates_size()));
  }
  if (message.base() > base_) {
    tokens_.clear();
    base_ = start_ = message.base();
    agrees_ = true;
  }
  // The server may have begun at an earlier length of the text, because a commit was still on its way. But it must not
  // get ahead of the text without limit.
  if (start_ + tokens_.size() + count > sent_length + static_cast<size_t>(kMaxDraftTokens)) {
    return InvalidArgument(fmt::format("a draft of more than {} tokens", kMaxDraftTokens));
  }
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<int>(i);
    const uint32_t token = message.tokens(at);
    if (token >= static_cast<uint32_t>(vocabulary_)) {
      return InvalidArgument(fmt::format("token {} of a vocabulary of {}", token, vocabulary_));
    }
    Guess guess = {{static_cast<Token>(token), static_cast<unsigned char>(message.confidence()[i]) / 255.0f}, {}};
    if (wants_candidates_) {
      auto candidates = ReadCandidates(message.candidates(at), vocabulary_);
      if (!candidates.ok()) return candidates.status();
      guess.candidates = std::move(*candidates);
    }
    if (agrees_) tokens_.push_back(std::move(guess));
  }
  return {};
}

size_t ReceivedDraft::Advance(std::span<const Token> text) {
  length_ = text.size();
  while (agrees_ && start_ < length_ && !tokens_.empty()) {
    agrees_ = tokens_.front().token.token == text[start_];
    if (agrees_) ++start_;
    tokens_.pop_front();
  }
  if (!agrees_) tokens_.clear();
  return start_;
}

void ReceivedDraft::AppendTo(int max_tokens, float p_min, Draft& draft) const {
  if (ahead() == 0) return;
  const size_t given = draft.tokens.size();
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const Guess& guess = tokens_[i];
    if (i < given) {
      if (draft.tokens[i].token != guess.token.token) return;
      continue;
    }
    if (draft.size() >= max_tokens || guess.token.confidence < p_min) return;
    draft.tokens.push_back(guess.token);
    if (!wants_candidates_) continue;
    while (draft.distributions.size() < i) {  // tokens of another drafter: with probability 1
      draft.distributions.push_back({{draft.tokens[draft.distributions.size()].token, 1.0f}});
    }
    draft.distributions.push_back(guess.candidates);
  }
}

}  // namespace outrider
