// RemoteDrafter: proposes the drafts of a draft model on another machine (outrider draft).
//
// It is asked in every step, like a drafter that looks things up, and proposes what has arrived so far. The draft
// server extends its draft while the target verifies the first tokens of it, so as long as the draft is right, the
// round trip costs no time. After a wrong token, the next draft takes a while to arrive; the caller decides whether to
// wait for it (Proposal::due).
//
// Whatever happens to the network or the server, a request goes on: without drafts while no server can be reached, and
// with those of another server as soon as one can. A stream is replaced by another one, to another server if there is
// one, when it breaks, when the server breaks the protocol, and when the server hangs: it owes an answer and has sent
// nothing for ten seconds (longer while it has a context to read).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "drafters/drafter.h"
#include "engine/tokenizer.h"
#include "remote/draft_network.h"
#include "remote/received_draft.h"

namespace outrider {

struct RemoteDrafterOptions {
  // Each token is drawn from at most so many (with --verify reject, which needs their probabilities).
  int candidates = 64;
};

class RemoteDrafter : public Drafter {
 public:
  RemoteDrafter(std::shared_ptr<DraftNetwork> network, const Tokenizer& target, int n_sequences,
                const RemoteDrafterOptions& options, const Clock& clock = Clock::Real());

  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) override;
  void Commit(SeqId seq, const CommittedStep& step) override;
  void Propose(std::span<Proposal*> proposals) override;
  void End(SeqId seq, std::span<const Token> history, bool complete) override;

 private:
  // A sequence of the target, and its stream to a draft server.
  struct RemoteSequence {
    std::unique_ptr<DraftStream> stream;  // null: no server can be reached, or no request is running
    std::optional<ReceivedDraft> draft;
    draft::v1::Open open;
    size_t context_length = 0;
    bool ready = false;      // the server has answered the Open
    size_t sent_length = 0;  // tokens of the text that the server has, or will have when it has read what was sent
    bool active = false;     // a request is running
    // While a new draft is awaited: the base that it will have, and when the commit that leads to it was sent.
    std::optional<size_t> awaited_base;
    TimePoint asked_at{};
    // While the server owes an answer: since when it has sent nothing, and how many tokens it has to read before.
    std::optional<TimePoint> silent_since;
    size_t unread = 0;
  };

  // Time from a commit to the arrival of the first tokens of a new draft: the round trip, and drafting them. Estimated
  // as TCP estimates its round trip: a mean, and the mean deviation from it.
  struct AnswerTime {
    double mean = 0, deviation = 0;
    bool known = false;

    void Observe(double seconds);
    double Expected() const { return mean + deviation; }
  };

  RemoteSequence& Of(SeqId seq) { return sequences_[static_cast<size_t>(seq)]; }
  void Connect(RemoteSequence& s, std::span<const Token> history);
  void Poll(RemoteSequence& s, std::span<const Token> history);
  Status ReadMessages(RemoteSequence& s, std::span<const Token> history);
  void SendContext(RemoteSequence& s, std::span<const Token> history, size_t have);
  void SendCommit(RemoteSequence& s, std::span<const Token> history);
  void ExpectAnswer(RemoteSequence& s, size_t tokens);
  void ObserveAnswer(double seconds);
  Status CheckSilence(const RemoteSequence& s) const;
  double Due(const RemoteSequence& s, std::span<const Token> history) const;
  static bool CommitCanWait(RemoteSequence& s, std::span<const Token> history);

  const std::shared_ptr<DraftNetwork> network_;
  const Tokenizer& target_;
  const RemoteDrafterOptions options_;
  const Clock& clock_;
  std::vector<RemoteSequence> sequences_;  // by sequence
  AnswerTime answer_time_;

  // Scratch.
  draft::v1::ToServer to_server_;
  draft::v1::ToClient to_client_;
};

}  // namespace outrider
