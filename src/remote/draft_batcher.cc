#include "remote/draft_batcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "remote/protocol.h"

namespace outrider {
namespace {

constexpr int kSliceTokens = 512;  // of a context, read while other streams wait for their next token

// Length of the longest prefix of `text` whose hash is among `prefixes`.
size_t KnownTokens(std::span<const Token> text, std::span<const uint64_t> prefixes) {
  const std::vector<uint64_t> hashes = PrefixHashes(text);
  size_t known = std::min(hashes.size(), prefixes.size());
  while (known > 0 && hashes[known - 1] != prefixes[known - 1]) --known;
  return known * kPrefixTokens;
}

}  // namespace

struct DraftBatcher::Stream {
  std::string client;
  std::shared_ptr<DraftPeer> peer;
  DraftSession session;
  SeqId slot = -1;
  bool opened = false;
  TimePoint last_message;
};

DraftBatcher::DraftBatcher(const DraftModel& model, const DraftBatcherOptions& options, const Clock& clock)
    : model_(model),
      options_(options),
      clock_(clock),
      drafter_(model, model.engine.info().n_sequences, options.window, model.tokenizer.vocabulary_size()),
      slots_(static_cast<size_t>(model.engine.info().n_sequences)) {
  limits_.vocabulary = model.tokenizer.vocabulary_size();
  limits_.fingerprint = model.tokenizer.fingerprint();
  limits_.max_length = options.max_length;
  limits_.ahead = std::clamp(options.ahead, 1, kMaxDraftTokens / 2);
}

DraftBatcher::~DraftBatcher() = default;

void DraftBatcher::Connect(StreamId id, std::string client, std::shared_ptr<DraftPeer> peer) {
  streams_[id] = std::make_unique<Stream>(
      Stream{std::move(client), std::move(peer), DraftSession(limits_), -1, false, clock_.Now()});
  stats_.streams = streams_.size();
}

void DraftBatcher::Receive(StreamId id, const draft::v1::ToServer& message) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;  // closed in the meantime
  Stream& stream = *found->second;
  stream.last_message = clock_.Now();
  const Status status = Handle(stream, message);
  if (status.ok()) {
    SendProposal(stream);
    stream.peer->ReadMore();
    return;
  }
  ++(status.code() == StatusCode::kResourceExhausted ? stats_.refused : stats_.broken);
  LogDebug("a draft stream of '{}' ends: {}", stream.client, status.message());
  Close(id, status);
}

Status DraftBatcher::Handle(Stream& stream, const draft::v1::ToServer& message) {
  DraftSession& session = stream.session;
  const size_t before = session.text().size();
  if (Status status = session.Receive(message); !status.ok()) return status;
  if (session.opening()) return TakeSlot(stream);
  const size_t added = session.text().size() - before;
  if (message.context_size() > 0) {
    stats_.context_tokens += added;
  } else {
    ++stats_.commits;
    stats_.committed_tokens += added;
  }
  drafter_.Revise(stream.slot, before);  // the tokens after it were drafted, and may differ now
  return {};
}

Status DraftBatcher::TakeSlot(Stream& stream) {
  const auto of_client = std::count_if(streams_.begin(), streams_.end(), [&](const auto& other) {
    return other.second->slot >= 0 && other.second->client == stream.client;
  });
  if (options_.streams_per_client > 0 && of_client >= options_.streams_per_client) {
    return {StatusCode::kResourceExhausted,
            fmt::format("this client has {} sequences already, which is its limit", of_client)};
  }
  DraftSession& session = stream.session;
  Slot* best = nullptr;
  size_t longest = 0;
  for (Slot& slot : slots_) {
    if (slot.taken) continue;
    const bool its_own = slot.client == stream.client && slot.owner == session.owner();
    const size_t known = its_own ? KnownTokens(slot.text, session.prefixes()) : 0;
    if (best != nullptr && (known < longest || (known == longest && slot.last_used > best->last_used))) continue;
    best = &slot;
    longest = known;
  }
  if (best == nullptr) {
    return {StatusCode::kResourceExhausted,
            fmt::format("all {} sequences of the draft server are in use (it can have more: -np)", slots_.size())};
  }
  best->taken = true;
  stream.slot = static_cast<SeqId>(best - slots_.data());
  if (best->client != stream.client || best->owner != session.owner()) drafter_.Forget(stream.slot);
  best->text.resize(longest);
  session.Begin(best->text);
  best->client = stream.client;
  best->owner = session.owner();
  drafter_.Begin(stream.slot, session.text(), session.context());
  ++stats_.opened;
  stats_.reused_tokens += longest;
  message_.Clear();
  message_.mutable_ready()->set_have(static_cast<uint32_t>(longest));
  message_.mutable_ready()->set_model(options_.model_name);
  stream.peer->Send(message_);
  return {};
}

void DraftBatcher::FreeSlot(Stream& stream) {
  if (stream.slot < 0) return;
  Slot& slot = slots_[static_cast<size_t>(stream.slot)];
  const std::span<const Token> text = stream.session.text();
  slot.text.assign(text.begin(), text.end());
  slot.taken = false;
  slot.last_used = ++uses_;
  stream.slot = -1;
}

void DraftBatcher::Close(StreamId id, const Status& status) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  FreeSlot(*found->second);
  found->second->peer->Close(status);
  streams_.erase(found);
  stats_.streams = streams_.size();
}

void DraftBatcher::Disconnect(StreamId id) {
  Close(id, {});
}

void DraftBatcher::CloseSilent() {
  const TimePoint now = clock_.Now();
  std::vector<StreamId> silent;
  for (const auto& [id, stream] : streams_) {
    if (now - stream->last_message > (stream->slot < 0 ? options_.open_limit : options_.idle_limit))
      silent.push_back(id);
  }
  for (const StreamId id : silent) Close(id, Unavailable("the stream was silent for too long"));
}

void DraftBatcher::CloseAll(const Status& status) {
  while (!streams_.empty()) Close(streams_.begin()->first, status);
}

void DraftBatcher::SendProposal(Stream& stream) {
  if (!stream.session.TakeProposal(&message_)) return;
  stats_.sent_tokens += static_cast<uint64_t>(message_.tokens_size());
  stream.peer->Send(message_);
}

// Reads one slice, for each stream in turn.
bool DraftBatcher::ReadSlice() {
  const auto behind = [this](const auto& entry) {
    const Stream& stream = *entry.second;
    return stream.slot >= 0 && stream.session.text().size() > 1 &&
           drafter_.Lag(stream.slot, stream.session.text_and_draft()) > 0;
  };
  auto next = std::find_if(streams_.upper_bound(last_reader_), streams_.end(), behind);
  if (next == streams_.end()) next = std::find_if(streams_.begin(), streams_.end(), behind);
  if (next == streams_.end()) return false;
  last_reader_ = next->first;
  Stream& stream = *next->second;
  const int lag = drafter_.Lag(stream.slot, stream.session.text_and_draft());
  drafter_.Read(stream.slot, stream.session.text_and_draft(), kSliceTokens);
  return drafter_.Lag(stream.slot, stream.session.text_and_draft()) <
         lag;  // an engine that fails is not asked again and again
}

bool DraftBatcher::Work() {
  const TimePoint start = clock_.Now();
  bool worked = ReadSlice();
  drafting_.clear();
  proposals_.clear();
  asked_.clear();
  for (const auto& [id, stream] : streams_) {
    const DraftSession& session = stream->session;
    if (stream->slot < 0 || session.Wanted() == 0) continue;
    if (drafter_.Lag(stream->slot, session.text_and_draft()) > 0) continue;
    drafting_.push_back(stream.get());
    Proposal& proposal = proposals_.emplace_back();
    proposal.seq = stream->slot;
    proposal.history = session.text_and_draft();
    proposal.max_tokens = 1;
  }
  for (Proposal& proposal : proposals_) asked_.push_back(&proposal);
  if (!asked_.empty()) drafter_.Propose(asked_);
  for (size_t i = 0; i < drafting_.size(); ++i) {
    const Draft& draft = proposals_[i].draft;
    DraftSession& session = drafting_[i]->session;
    if (draft.empty() && drafter_.Lag(drafting_[i]->slot, session.text_and_draft()) > 0)
      continue;  // its memory is lost and has to be read again
    stats_.drafted_tokens += draft.tokens.size();
    session.Extend(draft);
    SendProposal(*drafting_[i]);
  }
  worked = worked || !drafting_.empty();
  if (worked) stats_.draft_seconds += Milliseconds(clock_.Now() - start) / 1000;
  return worked;
}

}  // namespace outrider
