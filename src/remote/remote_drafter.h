// RemoteDrafter: a draft model on another machine (outrider draft) guesses what comes next.
//
// It is asked at every step like a drafter that looks things up, and answers with what has arrived. The other machine
// drafts on while the target verifies, so as long as it is right the round trip costs nothing. When it was wrong its
// next line takes a while to come; whether to wait for it or to go on without is for others to decide (Due).
//
// Whatever happens out there, a request goes on: without drafts while no server can be reached, with those of another
// server as soon as one can. A server that sends what it may not is left.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "drafters/drafter.h"
#include "engine/tokenizer.h"
#include "remote/arriving_line.h"
#include "remote/draft_network.h"

namespace outrider {

struct RemoteDrafterOptions {
  int candidates = 64;  // that each token may be drawn from when random draws are rejected (--verify reject)
};

class RemoteDrafter : public Drafter {
 public:
  RemoteDrafter(std::unique_ptr<DraftNetwork> network, const Tokenizer& target, int n_sequences,
                const RemoteDrafterOptions& options, const Clock& clock = Clock::Real());

  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) override;
  void Commit(SeqId seq, const CommittedStep& step) override;
  void Propose(std::span<Proposal*> proposals) override;
  void End(SeqId seq, std::span<const Token> history, bool complete) override;

 private:
  struct Conversation {
    std::unique_ptr<DraftStream> stream;  // null: there is no server, or no request
    std::optional<ArrivingLine> line;
    draft::v1::Open open;
    size_t context_length = 0;
    bool ready = false;   // the server has said what it has
    size_t told = 0;      // tokens of the text it knows, or will when it has read what was sent
    bool active = false;  // a request runs
    // Of the first answer to what was sent last, while it is awaited: the base it will have, and since when.
    std::optional<size_t> awaited;
    TimePoint asked_at{};
  };

  // How long the first tokens of a new line take from commit to arrival: the round trip, and drafting them. As TCP
  // guesses its round trips: a mean, and how far off it usually is.
  struct AnswerTime {
    double mean = 0, deviation = 0;
    bool known = false;

    void Observe(double seconds);
    double Expected() const { return mean + deviation; }
  };

  Conversation& Of(SeqId seq) { return conversations_[static_cast<size_t>(seq)]; }
  const Conversation& Of(SeqId seq) const { return conversations_[static_cast<size_t>(seq)]; }
  void Connect(Conversation& c, std::span<const Token> history);
  void Listen(Conversation& c, std::span<const Token> history);
  Status Hear(Conversation& c, std::span<const Token> history);
  void SendContext(Conversation& c, std::span<const Token> history, size_t have);
  void SendCommit(Conversation& c, std::span<const Token> history);
  double Due(const Conversation& c, std::span<const Token> history) const;
  static bool GoesOnAsSaid(Conversation& c, std::span<const Token> history);

  const std::unique_ptr<DraftNetwork> network_;
  const Tokenizer& target_;
  const RemoteDrafterOptions options_;
  const Clock& clock_;
  std::vector<Conversation> conversations_;  // by sequence
  AnswerTime answer_time_;

  // Scratch.
  draft::v1::ToServer to_server_;
  draft::v1::ToClient to_client_;
};

}  // namespace outrider
