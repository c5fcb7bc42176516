// Both ends over real sockets; what the protocol does is tested without them (remote_drafter_test.cc), and with real
// models and bad networks end to end.
#include "remote/grpc_network.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "remote/draft_server.h"
#include "remote/protocol.h"
#include "remote/remote_drafter.h"
#include "remote/soak_test_util.h"
#include "sampling/fake_filters.h"

namespace outrider {
namespace {

constexpr int kSequences = 8;
constexpr int kMinDraft = 3;            // tokens
constexpr int kSlots = 2 * kSequences;  // a stream that has ended frees its slot a moment later

EngineInfo Info() {
  EngineInfo info;
  info.n_vocab = 258;
  info.n_sequences = kSlots;
  info.sequence_length = 4000;
  info.max_batch = 512;
  info.micro_batch = 512;
  info.max_outputs = kSlots;
  return info;
}

// The next token is a function of the last one; no batches are recorded.
class ForgetfulEngine : public FakeEngine {
 public:
  ForgetfulEngine() : FakeEngine(Info(), [](std::span<const Token> tokens) { return After(tokens.back()); }) {}

  static Token After(Token token) { return (token * 7 + 3) % 200; }

  Status Decode(const Batch& batch) override {
    ForgetBatches();
    return FakeEngine::Decode(batch);
  }
};

// Never finishes a batch until it is released.
class HangingEngine : public ForgetfulEngine {
 public:
  Status Decode(const Batch& batch) override {
    hangs = true;
    released_.wait(false);
    return ForgetfulEngine::Decode(batch);
  }

  void Release() {
    released_ = true;
    released_.notify_all();
  }

  std::atomic<bool> hangs = false;

 private:
  std::atomic<bool> released_ = false;
};

std::string AddressOf(const DraftServer& server) {
  return fmt::format("127.0.0.1:{}", server.port());
}

// gRPC goes on to answer pings and health checks for a server whose worker hangs.
TEST(GrpcNetworkTest, AStreamMovesFromAServerThatHangsToAnother) {
  HangingEngine hanging;
  ForgetfulEngine working;
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  const DraftModel hanging_model{hanging, tokenizer, filters}, working_model{working, tokenizer, filters};
  DraftServerOptions options;
  options.listen = "127.0.0.1:0";
  auto first = DraftServer::Start(hanging_model, options), second = DraftServer::Start(working_model, options);
  ASSERT_TRUE(first.ok() && second.ok());
  const std::unique_ptr<HangingEngine, void (*)(HangingEngine*)> release(&hanging, [](auto* e) { e->Release(); });
  auto network = MakeGrpcNetwork({{AddressOf(**first), AddressOf(**second)}, {}});
  ASSERT_TRUE(network.ok()) << network.status().message();
  ManualClock clock;
  RemoteDrafter drafter(std::move(*network), tokenizer, 1, {}, clock);

  const std::vector<Token> history(20, 5);
  Proposal proposal;
  proposal.seq = 0;
  proposal.history = history;
  proposal.max_tokens = 8;
  Proposal* asked[] = {&proposal};
  const auto ask_until = [&](const auto& done) {
    const TimePoint start = Clock::Real().Now();
    while (!done() && Clock::Real().Now() - start < std::chrono::seconds(60)) {
      drafter.Propose(asked);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
  };
  // Each request gets the first of the servers that are connected, so this takes a while until the hanging one is.
  while (!hanging.hangs) {
    drafter.Begin(0, history, {});
    ASSERT_TRUE(ask_until([&] { return hanging.hangs || !proposal.draft.empty(); }));
    if (!hanging.hangs) drafter.End(0, history, true);
    proposal.draft.Clear();
  }
  clock.Advance(std::chrono::seconds(5));
  drafter.Propose(asked);
  EXPECT_TRUE(proposal.draft.empty());
  clock.Advance(std::chrono::seconds(6));
  EXPECT_TRUE(ask_until([&] { return !proposal.draft.empty(); })) << "no drafts of the other server";
}

// A server that answers Open and then never drafts must not come back after the shortest pause again and again.
TEST(GrpcNetworkTest, OnlyTokensResetThePauseOfAServerThatFails) {
  using std::chrono::milliseconds;
  constexpr auto kPatience = std::chrono::seconds(60);
  constexpr milliseconds kShortestPauses[] = {milliseconds(100), milliseconds(200), milliseconds(400),
                                              milliseconds(800)};
  ForgetfulEngine engine;
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  const DraftModel model{engine, tokenizer, filters};
  DraftServerOptions options;
  options.listen = "127.0.0.1:0";
  auto server = DraftServer::Start(model, options);
  ASSERT_TRUE(server.ok()) << server.status().message();
  auto network = MakeGrpcNetwork({{AddressOf(**server)}, {}});
  ASSERT_TRUE(network.ok()) << network.status().message();

  draft::v1::ToServer open, context;
  open.mutable_open()->set_protocol(kProtocol);
  open.mutable_open()->set_vocabulary(tokenizer.fingerprint());
  open.mutable_open()->set_length(1);
  open.mutable_open()->mutable_sampling()->set_top_p(1);
  open.mutable_open()->mutable_sampling()->set_typical_p(1);
  open.mutable_open()->mutable_sampling()->set_top_n_sigma(-1);
  context.add_context(5);
  std::unique_ptr<DraftStream> stream;
  const auto connect = [&] {  // as soon as the network uses the server
    const TimePoint end = Clock::Real().Now() + kPatience;
    while (!(stream = (*network)->Connect()) && Clock::Real().Now() < end) std::this_thread::sleep_for(milliseconds(1));
    if (stream) stream->Send(open);
    return stream != nullptr;
  };
  const auto arrives = [&](const auto& wanted) {
    const TimePoint end = Clock::Real().Now() + kPatience;
    draft::v1::ToClient message;
    TimePoint arrived;
    while (!stream->over() && Clock::Real().Now() < end) {
      if (!stream->Receive(&message, &arrived)) {
        stream->Wait(end);
      } else if (wanted(message)) {
        return true;
      }
    }
    return false;
  };
  const auto is_ready = [](const draft::v1::ToClient& message) { return message.has_ready(); };
  const auto has_tokens = [](const draft::v1::ToClient& message) { return message.tokens_size() > 0; };

  ASSERT_TRUE(connect());
  for (const milliseconds shortest_pause : kShortestPauses) {
    ASSERT_TRUE(arrives(is_ready));
    const TimePoint failed = Clock::Real().Now();
    stream->ReportFailure(Unavailable("does not draft"));
    ASSERT_TRUE(connect());
    EXPECT_GE(Clock::Real().Now() - failed, shortest_pause);
  }
  ASSERT_TRUE(arrives(is_ready));
  stream->Send(context);
  ASSERT_TRUE(arrives(has_tokens));
  const TimePoint failed = Clock::Real().Now();
  stream->ReportFailure(Unavailable("does not draft any more"));
  ASSERT_TRUE(connect());
  // It is 0.2 s at most; the next longer one would be 1.6 s at least.
  EXPECT_LT(Clock::Real().Now() - failed, milliseconds(1600)) << "the pause is as long as if it had never drafted";
}

// Eight sequences at one draft server.
TEST(GrpcNetworkTest, CommitsByTheMillionDoNotMakeItGrow) {
  const int commits = SoakCommits(20'000);
  ForgetfulEngine engine;
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  const DraftModel model{engine, tokenizer, filters};
  DraftServerOptions server_options;
  server_options.listen = "127.0.0.1:0";
  auto server = DraftServer::Start(model, server_options);
  ASSERT_TRUE(server.ok()) << server.status().message();
  auto network = MakeGrpcNetwork({{AddressOf(**server)}, {}});
  ASSERT_TRUE(network.ok()) << network.status().message();
  RemoteDrafter drafter(std::move(*network), tokenizer, kSequences, {});

  std::mt19937 random(1);
  std::vector<std::vector<Token>> histories(kSequences);
  DraftContext context;
  context.sampling.temperature = 0;
  long at_first = 0, proposed = 0, wrong = 0;
  std::vector<Proposal> proposals(kSequences);
  for (int i = 0; i < commits; ++i) {
    const SeqId seq = i % kSequences;
    std::vector<Token>& history = histories[static_cast<size_t>(seq)];
    if (history.empty() || history.size() > 1000) {
      if (!history.empty()) drafter.End(seq, history, true);
      history.assign(20 + random() % 300, static_cast<Token>(random() % 200));
      drafter.Begin(seq, history, context);
    }
    if (i == commits / 4) at_first = HeapBytes();

    Proposal& proposal = proposals[static_cast<size_t>(seq)];
    proposal.seq = seq;
    proposal.history = history;
    proposal.max_tokens = 8;
    proposal.patience = 0.05;
    proposal.draft.Clear();
    Proposal* asked[] = {&proposal};
    const TimePoint start = Clock::Real().Now();
    // The server drafts on until it is many tokens ahead, so that these come however busy the machine is.
    for (drafter.Propose(asked); proposal.draft.size() < kMinDraft; drafter.Propose(asked)) {
      ASSERT_LT(Clock::Real().Now() - start, std::chrono::seconds(60)) << "no draft for commit " << i;
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // a stream begins, or the machine is busy
    }
    proposed += proposal.draft.size();
    for (Token last = history.back(); const DraftToken& token : proposal.draft.tokens) {
      last = ForgetfulEngine::After(last);
      wrong += token.token != last;
    }
    const int added = 1 + static_cast<int>(random() % 5);
    for (int token = 0; token < added; ++token) history.push_back(ForgetfulEngine::After(history.back()));
    if (random() % 3 == 0) history.back() = static_cast<Token>(random() % 200);
    drafter.Commit(seq, {history, added});
  }
  const long grown = HeapBytes() - at_first;
  const DraftStats stats = (*server)->stats();
  EXPECT_GE(proposed, static_cast<long>(kMinDraft) * commits);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(stats.broken, 0u);
  EXPECT_LT(grown, 4 << 20);
  RecordProperty("heap_bytes_more_than_after_a_quarter", std::to_string(grown));
}

}  // namespace
}  // namespace outrider
