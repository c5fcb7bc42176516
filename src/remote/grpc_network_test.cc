// Both ends over real sockets; what the protocol does is tested without them (remote_drafter_test.cc), and with real
// models and bad networks end to end.
#include "remote/grpc_network.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "remote/draft_server.h"
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
  auto network = MakeGrpcNetwork({{fmt::format("127.0.0.1:{}", (*server)->port())}, {}});
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
