#include "remote/draft_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "remote/protocol.h"

namespace outrider {
namespace {

constexpr int kMaxBiases = 1024;
// A message has at least so many tokens: the first one of a draft, and those after it.
constexpr size_t kFirstMessageTokens = 4;
constexpr size_t kMessageTokens = 8;

Result<SamplingOptions> ReadSampling(const draft::v1::Sampling& message, Token vocabulary) {
  SamplingOptions options;
  options.seed = message.seed();
  options.temperature = message.temperature();
  options.top_k = message.top_k();
  options.top_p = message.top_p();
  options.min_p = message.min_p();
  options.typical_p = message.typical_p();
  options.top_n_sigma = message.top_n_sigma();
  for (const float value :
       {options.temperature, options.top_p, options.min_p, options.typical_p, options.top_n_sigma}) {
    if (!std::isfinite(value)) return InvalidArgument("a sampling parameter is not a finite number");
  }
  if (message.biased_size() != message.bias_size() || message.biased_size() > kMaxBiases) {
    return InvalidArgument(fmt::format("{} biased tokens with {} biases", message.biased_size(), message.bias_size()));
  }
  for (int i = 0; i < message.biased_size(); ++i) {
    if (std::isnan(message.bias(i))) return InvalidArgument("a bias is not a number");
    if (message.biased(i) >= static_cast<uint32_t>(vocabulary)) continue;
    options.logit_bias.emplace_back(static_cast<Token>(message.biased(i)), message.bias(i));
  }
  return options;
}

}  // namespace

Status DraftSession::Receive(const draft::v1::ToServer& message) {
  switch (phase_) {
    case Phase::kNew:
      if (!message.has_open()) return InvalidArgument("the first message must be an Open");
      return Open(message.open());
    case Phase::kOpening:
      return InvalidArgument("a message before the answer to Open");
    case Phase::kReading:
      return Read(message);
    case Phase::kDrafting:
      return Commit(message);
  }
  return Internal("no such phase");
}

Status DraftSession::Open(const draft::v1::Open& open) {
  if (open.protocol() != kProtocol) {
    return InvalidArgument(fmt::format("this draft server speaks protocol {}, the client {}: update the {}", kProtocol,
                                       open.protocol(), open.protocol() > kProtocol ? "draft server" : "client"));
  }
  if (open.vocabulary() != limits_.fingerprint) {
    return InvalidArgument(
        "the draft model's vocabulary is not the target's; a draft model of another vocabulary can only draft on the "
        "same machine (-md)");
  }
  if (open.length() == 0 || open.length() > limits_.max_length) {
    return InvalidArgument(
        fmt::format("a context of {} tokens; 1 to {} are possible", open.length(), limits_.max_length));
  }
  if (static_cast<size_t>(open.prefixes_size()) > std::min(open.length() / kPrefixTokens, kMaxPrefixes)) {
    return InvalidArgument(fmt::format("{} hashes of a context of {} tokens", open.prefixes_size(), open.length()));
  }
  if (open.owner().size() > kMaxOwnerBytes) return InvalidArgument("the owner's name is too long");
  if (open.top_k() > static_cast<uint32_t>(kMaxCandidates)) {
    return InvalidArgument(fmt::format("at most {} candidates can be sent with a token", kMaxCandidates));
  }
  auto sampling = ReadSampling(open.sampling(), limits_.vocabulary);
  if (!sampling.ok()) return sampling.status();
  context_.sampling = std::move(*sampling);
  // Tokens are drawn only from the candidates that are sent.
  const auto candidates = static_cast<int>(open.top_k());
  int& top_k = context_.sampling.top_k;
  if (candidates > 0) top_k = top_k > 0 ? std::min(top_k, candidates) : candidates;
  context_.owner = owner_ = open.owner();
  context_.distributions = candidates > 0;
  prefixes_.assign(open.prefixes().begin(), open.prefixes().end());
  context_length_ = open.length();
  phase_ = Phase::kOpening;
  return {};
}

void DraftSession::Begin(std::span<const Token> known) {
  tokens_.assign(known.begin(), known.end());
  tokens_.reserve(context_length_ + 256);
  committed_ = tokens_.size();
  prefixes_.clear();
  phase_ = Phase::kReading;
  if (committed_ == context_length_) BeginDraft();
}

Status DraftSession::Read(const draft::v1::ToServer& message) {
  const auto count = static_cast<size_t>(message.context_size());
  if (count == 0 || count > kMaxSliceTokens || message.has_open() || message.base() != 0) {
    return InvalidArgument(fmt::format("expected 1 to {} tokens of the context, got {}", kMaxSliceTokens, count));
  }
  if (count > context_length_ - committed_) {
    return InvalidArgument(fmt::format("the context was to have {} tokens and has more", context_length_));
  }
  for (const uint32_t token : message.context()) {
    if (token >= static_cast<uint32_t>(limits_.vocabulary)) {
      return InvalidArgument(fmt::format("token {} of a vocabulary of {}", token, limits_.vocabulary));
    }
    tokens_.push_back(static_cast<Token>(token));
  }
  committed_ = tokens_.size();
  if (committed_ == context_length_) BeginDraft();
  return {};
}

void DraftSession::BeginDraft() {
  phase_ = Phase::kDrafting;
  base_ = committed_;
  tokens_.resize(committed_);
  guesses_.clear();
  sent_ = 0;
  survival_ = 1;
  ended_ = false;
  owes_answer_ = true;
}

Status DraftSession::Commit(const draft::v1::ToServer& message) {
  const auto count = static_cast<size_t>(message.tokens_size());
  if (message.has_open() || message.context_size() > 0 || message.base() != committed_) {
    return InvalidArgument(
        fmt::format("expected a commit after {} tokens, got one after {}", committed_, message.base()));
  }
  const size_t kept = message.kept();
  if (kept > sent_) return InvalidArgument(fmt::format("{} tokens kept of {} that were sent", kept, sent_));
  if (count > kMaxCommitTokens || committed_ + kept + count > limits_.max_length) {
    return InvalidArgument(fmt::format("a commit of {} tokens after {}", count, committed_ + kept));
  }
  for (const uint32_t token : message.tokens()) {
    if (token >= static_cast<uint32_t>(limits_.vocabulary)) {
      return InvalidArgument(fmt::format("token {} of a vocabulary of {}", token, limits_.vocabulary));
    }
  }
  committed_ += kept;
  size_t agreed = kept;  // tokens of the draft that are text now
  bool agrees = true;
  for (const uint32_t value : message.tokens()) {
    const auto token = static_cast<Token>(value);
    agrees = agrees && committed_ < tokens_.size() && tokens_[committed_] == token;
    if (!agrees) {
      tokens_.resize(committed_);
      tokens_.push_back(token);
    } else {
      ++agreed;
    }
    ++committed_;
  }
  if (!agrees) {
    BeginDraft();
    return {};
  }
  guesses_.erase(guesses_.begin(), guesses_.begin() + static_cast<std::ptrdiff_t>(agreed));
  if (agreed > sent_) base_ = committed_;  // some were never sent: for the client, the draft begins here
  sent_ -= std::min(sent_, agreed);
  if (sent_ == 0) owes_answer_ = true;
  survival_ = 1;
  for (const Guess& guess : guesses_) survival_ *= guess.confidence / 255.0;
  return {};
}

int DraftSession::Wanted() const {
  if (phase_ != Phase::kDrafting || ended_ || survival_ < limits_.min_survival) return 0;
  return std::max(0, limits_.ahead - static_cast<int>(draft_size()));
}

void DraftSession::Extend(const Draft& more) {
  if (more.empty()) ended_ = true;
  for (size_t i = 0; i < more.tokens.size(); ++i) {
    const DraftToken& token = more.tokens[i];
    const float confidence = std::clamp(token.confidence, 0.0f, 1.0f);
    Guess guess = {static_cast<uint8_t>(std::lround(confidence * 255)), {}};
    if (i < more.distributions.size()) guess.candidates = more.distributions[i];
    tokens_.push_back(token.token);
    guesses_.push_back(std::move(guess));
    survival_ *= confidence;
  }
}

// Not one message per token, because its overhead would be larger than its content. A client that has no tokens gets as
// many as a step usually verifies, then come larger messages, and when the draft is complete, the rest, or that there
// are none.
bool DraftSession::TakeProposal(draft::v1::ToClient* message) {
  const size_t size = draft_size();
  if (phase_ != Phase::kDrafting || (sent_ == size && !owes_answer_)) return false;
  const bool enough = size - sent_ >= (sent_ == 0 ? kFirstMessageTokens : kMessageTokens);
  if (!enough && Wanted() > 0) return false;
  owes_answer_ = false;
  message->Clear();
  message->set_base(static_cast<uint32_t>(base_));
  for (size_t i = sent_; i < size; ++i) {
    message->add_tokens(static_cast<uint32_t>(tokens_[committed_ + i]));
    message->mutable_confidence()->push_back(static_cast<char>(guesses_[i].confidence));
    if (!context_.distributions) continue;
    draft::v1::Candidates* candidates = message->add_candidates();
    for (const TokenProbability& candidate : guesses_[i].candidates) {
      candidates->add_tokens(static_cast<uint32_t>(candidate.token));
      candidates->add_probabilities(candidate.probability);
    }
  }
  sent_ = size;
  return true;
}

}  // namespace outrider
