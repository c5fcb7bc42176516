#include "remote/remote_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "remote/protocol.h"

namespace outrider {
namespace {

void WriteSampling(const SamplingOptions& options, draft::v1::Sampling* message) {
  message->set_seed(options.seed);
  message->set_temperature(options.temperature);
  message->set_top_k(options.top_k);
  message->set_top_p(options.top_p);
  message->set_min_p(options.min_p);
  message->set_typical_p(options.typical_p);
  message->set_top_n_sigma(options.top_n_sigma);
  constexpr size_t kMostBiases = 1024;  // the draft is a guess without the others
  for (size_t i = 0; i < std::min(options.logit_bias.size(), kMostBiases); ++i) {
    message->add_biased(static_cast<uint32_t>(options.logit_bias[i].first));
    message->add_bias(options.logit_bias[i].second);
  }
}

constexpr int kMostHeard = 32;  // messages at a time

// A server is told what it foresaw when there are so many tokens of it, or fewer left than these.
constexpr size_t kTellAfter = 8, kPlenty = 12;

}  // namespace

void RemoteDrafter::AnswerTime::Observe(double seconds) {
  if (!std::exchange(known, true)) {
    mean = seconds;
    deviation = seconds / 2;
    return;
  }
  deviation += (std::abs(seconds - mean) - deviation) / 8;
  mean += (seconds - mean) / 8;
}

RemoteDrafter::RemoteDrafter(std::unique_ptr<DraftNetwork> network, const Tokenizer& target, int n_sequences,
                             const RemoteDrafterOptions& options, const Clock& clock)
    : Drafter({.name = "remote", .draws = true, .drafts_ahead = true}),
      network_(std::move(network)),
      target_(target),
      options_(options),
      clock_(clock),
      conversations_(static_cast<size_t>(n_sequences)) {}

void RemoteDrafter::Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) {
  Conversation& c = Of(seq);
  c.stream.reset();
  c.active = true;
  c.open.Clear();
  c.open.set_protocol(kProtocol);
  c.open.set_vocabulary(target_.fingerprint());
  c.open.set_owner(context.owner);
  c.open.set_top_k(context.distributions ? static_cast<uint32_t>(options_.candidates) : 0);
  WriteSampling(context.sampling, c.open.mutable_sampling());
  Connect(c, history);
}

void RemoteDrafter::Connect(Conversation& c, std::span<const Token> history) {
  if (history.empty()) return;
  c.stream = network_->Connect();
  if (!c.stream) return;
  c.line.emplace(target_.vocabulary_size(), c.open.top_k() > 0);
  c.ready = false;
  c.awaited.reset();
  c.told = 0;
  c.context_length = history.size();
  c.open.set_length(static_cast<uint32_t>(history.size()));
  c.open.clear_prefixes();
  for (const uint64_t hash : PrefixHashes(history)) c.open.add_prefixes(hash);
  to_server_.Clear();
  *to_server_.mutable_open() = c.open;
  c.stream->Send(to_server_);
}

// Takes in what has arrived; leaves a stream that is over or broken for another.
void RemoteDrafter::Listen(Conversation& c, std::span<const Token> history) {
  if (c.stream) {
    const Status status = Hear(c, history);
    if (!status.ok()) c.stream->Reproach(status);
    if (!status.ok() || c.stream->over()) c.stream.reset();
  }
  if (!c.stream && c.active) Connect(c, history);
}

Status RemoteDrafter::Hear(Conversation& c, std::span<const Token> history) {
  TimePoint arrived;
  for (int i = 0; i < kMostHeard && c.stream->Receive(&to_client_, &arrived); ++i) {
    if (to_client_.has_ready() == c.ready) {
      return InvalidArgument(c.ready ? "the answer to Open came twice" : "a proposal before the answer to Open");
    }
    if (c.ready) {
      if (Status status = c.line->Take(to_client_, c.told); !status.ok()) return status;
      if (c.awaited == to_client_.base()) {
        answer_time_.Observe(Milliseconds(arrived - c.asked_at) / 1000);
        c.awaited.reset();
      }
      continue;
    }
    const size_t have = to_client_.ready().have();
    if (have > c.context_length || have % kPrefixTokens != 0) {
      return InvalidArgument(fmt::format("the server has {} tokens of a context of {}", have, c.context_length));
    }
    c.ready = true;
    SendContext(c, history, have);
    if (history.size() > c.told) SendCommit(c, history);
  }
  return {};
}

void RemoteDrafter::SendContext(Conversation& c, std::span<const Token> history, size_t have) {
  for (c.told = have; c.told < c.context_length;) {
    const size_t count = std::min(kMaxSliceTokens, c.context_length - c.told);
    to_server_.Clear();
    for (const Token token : history.subspan(c.told, count)) to_server_.add_context(static_cast<uint32_t>(token));
    c.stream->Send(to_server_);
    c.told += count;
  }
}

void RemoteDrafter::SendCommit(Conversation& c, std::span<const Token> history) {
  const size_t foreseen = c.line->Settle(history);
  const size_t kept = foreseen - std::min(foreseen, c.told);
  to_server_.Clear();
  to_server_.set_base(static_cast<uint32_t>(c.told));
  to_server_.set_kept(static_cast<uint32_t>(kept));
  const std::span<const Token> rest = history.subspan(c.told + kept);
  const std::span<const Token> sent = rest.first(std::min(rest.size(), kMaxCommitTokens));
  for (const Token token : sent) to_server_.add_tokens(static_cast<uint32_t>(token));
  c.stream->Send(to_server_);
  c.told += kept + sent.size();
  // An answer that did not come before the next question takes at least so long.
  if (c.awaited) answer_time_.Observe(std::max(answer_time_.mean, Milliseconds(clock_.Now() - c.asked_at) / 1000));
  c.awaited.reset();
  if (c.line->ahead() > 0) return;
  c.awaited = c.told;
  c.asked_at = clock_.Now();
}

void RemoteDrafter::Commit(SeqId seq, const CommittedStep& step) {
  const std::span<const Token> history = step.history;
  Conversation& c = Of(seq);
  Listen(c, history);
  if (c.stream && c.ready && c.told < history.size() && !GoesOnAsSaid(c, history)) SendCommit(c, history);
}

// Nothing that the server does not expect, and there is enough of the line left: that can be told a few steps later.
bool RemoteDrafter::GoesOnAsSaid(Conversation& c, std::span<const Token> history) {
  return c.line->Settle(history) == history.size() && history.size() - c.told < kTellAfter &&
         c.line->ahead() >= kPlenty;
}

// Seconds until an answer is expected; 0 if there is none to expect.
double RemoteDrafter::Due(const Conversation& c, std::span<const Token> history) const {
  if (!c.awaited || !answer_time_.known || c.told < history.size()) return 0;
  return std::max(0.0, answer_time_.Expected() - Milliseconds(clock_.Now() - c.asked_at) / 1000);
}

void RemoteDrafter::Propose(std::span<Proposal*> proposals) {
  const TimePoint start = clock_.Now();
  for (Proposal* proposal : proposals) {
    Conversation& c = Of(proposal->seq);
    const TimePoint deadline =
        start + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(proposal->patience));
    for (;;) {
      Listen(c, proposal->history);
      if (!c.stream || !c.ready) break;
      c.line->Settle(proposal->history);
      if (c.line->ahead() > 0) c.awaited.reset();  // the line that was known goes on
      if (!c.awaited || clock_.Now() >= deadline) break;
      c.stream->Wait(deadline);
    }
    if (c.stream && c.ready) c.line->Continue(proposal->max_tokens, proposal->p_min, proposal->draft);
    proposal->due = Due(c, proposal->history);
  }
}

void RemoteDrafter::End(SeqId seq, std::span<const Token>, bool) {
  Conversation& c = Of(seq);
  c.stream.reset();
  c.active = false;
}

}  // namespace outrider
