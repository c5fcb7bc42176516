// Any messages of a client to a draft server: refused, or a text and a draft within the limits.
#include <string_view>

#include "messages.h"
#include "remote/draft_session.h"
#include "remote/protocol.h"
#include "require.h"

namespace outrider {
namespace {

void Check(std::string_view bytes) {
  DraftLimits limits;
  limits.vocabulary = 100;
  limits.fingerprint = 7;
  limits.max_length = 5000;
  DraftSession session(limits);
  size_t committed = 0;
  int turn = 0;
  ForEachMessage<draft::v1::ToServer>(bytes, [&](const draft::v1::ToServer& message) {
    if (!session.Receive(message).ok()) return false;
    if (session.opening()) session.Begin({});
    Require(session.text().size() >= committed, "a text never shrinks");
    committed = session.text().size();
    Require(session.text_and_draft().size() <= limits.max_length + static_cast<size_t>(kMaxDraftTokens),
            "memory is bounded");
    for (const Token token : session.text()) Require(token >= 0 && token < limits.vocabulary, "all tokens are known");
    // The worker, which is quick sometimes and slow at others.
    for (int i = 0; i < ++turn % 7 && session.Wanted() > 0; ++i) {
      Draft draft;
      draft.tokens.push_back({static_cast<Token>((turn * 13 + i) % limits.vocabulary), 0.9f});
      if (turn % 11 == 0) draft.Clear();  // the model proposes nothing
      if (turn % 5 != 0) session.Extend(draft);
    }
    draft::v1::ToClient proposal;
    if (session.TakeProposal(&proposal)) {
      Require(proposal.tokens_size() > 0 || session.Wanted() == 0, "a message has tokens, or there are none to come");
      Require(proposal.base() <= committed, "a draft begins in the text");
      Require(proposal.confidence().size() == static_cast<size_t>(proposal.tokens_size()), "each has a confidence");
    }
    return true;
  });
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outrider::Check(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
