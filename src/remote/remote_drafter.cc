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
  constexpr size_t kMaxBiases = 1024;  // the draft server draws without the others
  for (size_t i = 0; i < std::min(options.logit_bias.size(), kMaxBiases); ++i) {
    message->add_biased(static_cast<uint32_t>(options.logit_bias[i].first));
    message->add_bias(options.logit_bias[i].second);
  }
}

constexpr int kMaxMessagesPerPoll = 32;

// While the target accepts the server's own tokens, the server goes on by itself and need not be told at once. A commit
// is sent when kCommitAfter tokens were accepted since the last one, or when fewer than kMinAhead tokens of the draft
// are left to be proposed.
constexpr size_t kCommitAfter = 8, kMinAhead = 12;

// If a server owes an answer and sends nothing for kMaxSilence, it hangs, although its connection may still answer
// pings. If it has to read a context before it can answer, kReadingTime for each token is added: the slowest useful
// machine needs that much while it also reads the contexts of other streams. With a shorter limit a busy server would
// lose its streams (when they come back, it reads on where it was); with a longer one, requests would be without drafts
// for longer.
constexpr Duration kMaxSilence = std::chrono::seconds(10);
constexpr Duration kReadingTime = std::chrono::milliseconds(10);

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

RemoteDrafter::RemoteDrafter(std::shared_ptr<DraftNetwork> network, const Tokenizer& target, int n_sequences,
                             const RemoteDrafterOptions& options, const Clock& clock)
    : Drafter({.name = "remote", .draws = true, .drafts_ahead = true}),
      network_(std::move(network)),
      target_(target),
      options_(options),
      clock_(clock),
      sequences_(static_cast<size_t>(n_sequences)) {}

void RemoteDrafter::Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) {
  RemoteSequence& s = Of(seq);
  s.stream.reset();
  s.active = true;
  s.open.Clear();
  s.open.set_protocol(kProtocol);
  s.open.set_vocabulary(target_.fingerprint());
  // Cut where many adapters make it longer (scheduler/memory_owner.h); the client's name, which comes first, is short.
  s.open.set_owner(context.owner.substr(0, kMaxOwnerBytes));
  s.open.set_top_k(context.distributions ? static_cast<uint32_t>(options_.candidates) : 0);
  WriteSampling(context.sampling, s.open.mutable_sampling());
  Connect(s, history);
}

void RemoteDrafter::Connect(RemoteSequence& s, std::span<const Token> history) {
  if (history.empty()) return;
  s.stream = network_->Connect();
  if (!s.stream) return;
  s.draft.emplace(target_.vocabulary_size(), s.open.top_k() > 0);
  s.ready = false;
  s.awaited_base.reset();
  s.silent_since.reset();
  s.sent_length = 0;
  s.context_length = history.size();
  s.open.set_length(static_cast<uint32_t>(history.size()));
  s.open.clear_prefixes();
  for (const uint64_t hash : PrefixHashes(history)) s.open.add_prefixes(hash);
  to_server_.Clear();
  *to_server_.mutable_open() = s.open;
  s.stream->Send(to_server_);
  ExpectAnswer(s, 0);
}

// Reads the messages that have arrived. Replaces a stream that is over, or whose server broke the protocol or hangs.
void RemoteDrafter::Poll(RemoteSequence& s, std::span<const Token> history) {
  if (s.stream) {
    Status status = ReadMessages(s, history);
    if (status.ok()) status = CheckSilence(s);
    if (!status.ok()) s.stream->ReportFailure(status);
    if (!status.ok() || s.stream->over()) s.stream.reset();
  }
  if (!s.stream && s.active) Connect(s, history);
}

Status RemoteDrafter::ReadMessages(RemoteSequence& s, std::span<const Token> history) {
  TimePoint arrived;
  for (int i = 0; i < kMaxMessagesPerPoll && s.stream->Receive(&to_client_, &arrived); ++i) {
    s.silent_since.reset();
    if (to_client_.has_ready() == s.ready) {
      return InvalidArgument(s.ready ? "the answer to Open came twice" : "a proposal before the answer to Open");
    }
    if (s.ready) {
      if (Status status = s.draft->Receive(to_client_, s.sent_length); !status.ok()) return status;
      if (s.awaited_base == to_client_.base()) {
        ObserveAnswer(Milliseconds(arrived - s.asked_at) / 1000);
        s.awaited_base.reset();
      }
      continue;
    }
    const size_t have = to_client_.ready().have();
    if (have > s.context_length || have % kPrefixTokens != 0) {
      return InvalidArgument(fmt::format("the server has {} tokens of a context of {}", have, s.context_length));
    }
    s.ready = true;
    SendContext(s, history, have);
    if (history.size() > s.sent_length) SendCommit(s, history);
  }
  return {};
}

void RemoteDrafter::SendContext(RemoteSequence& s, std::span<const Token> history, size_t have) {
  ExpectAnswer(s, s.context_length - have);
  for (s.sent_length = have; s.sent_length < s.context_length;) {
    const size_t count = std::min(kMaxSliceTokens, s.context_length - s.sent_length);
    to_server_.Clear();
    for (const Token token : history.subspan(s.sent_length, count))
      to_server_.add_context(static_cast<uint32_t>(token));
    s.stream->Send(to_server_);
    s.sent_length += count;
  }
}

void RemoteDrafter::SendCommit(RemoteSequence& s, std::span<const Token> history) {
  const size_t agreed = s.draft->Advance(history);
  const size_t kept = agreed - std::min(agreed, s.sent_length);
  to_server_.Clear();
  to_server_.set_base(static_cast<uint32_t>(s.sent_length));
  to_server_.set_kept(static_cast<uint32_t>(kept));
  const std::span<const Token> rest = history.subspan(s.sent_length + kept);
  const std::span<const Token> sent = rest.first(std::min(rest.size(), kMaxCommitTokens));
  for (const Token token : sent) to_server_.add_tokens(static_cast<uint32_t>(token));
  s.stream->Send(to_server_);
  s.sent_length += kept + sent.size();
  // A draft was awaited and has not arrived before this commit. So an answer takes at least the time since the
  // question.
  if (s.awaited_base) ObserveAnswer(std::max(answer_time_.mean, Milliseconds(clock_.Now() - s.asked_at) / 1000));
  s.awaited_base.reset();
  if (s.draft->ahead() > 0) return;
  s.awaited_base = s.sent_length;
  s.asked_at = clock_.Now();
  ExpectAnswer(s, 0);
}

// The server owes an answer from now on, if it does not owe one already. It has to read `tokens` first.
void RemoteDrafter::ExpectAnswer(RemoteSequence& s, size_t tokens) {
  if (s.silent_since) return;
  s.silent_since = clock_.Now();
  s.unread = tokens;
}

void RemoteDrafter::ObserveAnswer(double seconds) {
  answer_time_.Observe(seconds);
  network_->SetAnswerSeconds(answer_time_.mean);
}

// An error if the server hangs.
Status RemoteDrafter::CheckSilence(const RemoteSequence& s) const {
  if (!s.silent_since) return {};
  const Duration silence = clock_.Now() - *s.silent_since;
  if (silence <= kMaxSilence + static_cast<int64_t>(s.unread) * kReadingTime) return {};
  return Unavailable(fmt::format("has not answered for {:.0f} s", Milliseconds(silence) / 1000));
}

void RemoteDrafter::Commit(SeqId seq, const CommittedStep& step) {
  const std::span<const Token> history = step.history;
  RemoteSequence& s = Of(seq);
  Poll(s, history);
  if (s.stream && s.ready && s.sent_length < history.size() && !CommitCanWait(s, history)) SendCommit(s, history);
}

// Whether the server has drafted all tokens that were not committed yet, and enough tokens after them: then the commit
// can wait for a few steps.
bool RemoteDrafter::CommitCanWait(RemoteSequence& s, std::span<const Token> history) {
  return s.draft->Advance(history) == history.size() && history.size() - s.sent_length < kCommitAfter &&
         s.draft->ahead() >= kMinAhead;
}

// Seconds until a draft is expected to arrive; 0 if none is expected.
double RemoteDrafter::Due(const RemoteSequence& s, std::span<const Token> history) const {
  if (!s.awaited_base || !answer_time_.known || s.sent_length < history.size()) return 0;
  return std::max(0.0, answer_time_.Expected() - Milliseconds(clock_.Now() - s.asked_at) / 1000);
}

void RemoteDrafter::Propose(std::span<Proposal*> proposals) {
  const TimePoint start = clock_.Now();
  for (Proposal* proposal : proposals) {
    RemoteSequence& s = Of(proposal->seq);
    const TimePoint deadline =
        start + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(proposal->patience));
    for (;;) {
      Poll(s, proposal->history);
      if (!s.stream || !s.ready) break;
      s.draft->Advance(proposal->history);
      if (s.draft->ahead() > 0) s.awaited_base.reset();  // more of the same draft has arrived
      if (!s.awaited_base || clock_.Now() >= deadline) break;
      s.stream->Wait(deadline);
    }
    if (s.stream && s.ready) s.draft->AppendTo(proposal->max_tokens, proposal->p_min, proposal->draft);
    proposal->due = Due(s, proposal->history);
  }
}

void RemoteDrafter::End(SeqId seq, std::span<const Token>, bool) {
  RemoteSequence& s = Of(seq);
  s.stream.reset();
  s.active = false;
}

}  // namespace outrider
