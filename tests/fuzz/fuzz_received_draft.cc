// Any messages of a draft server to a client whose text grows meanwhile: refused, or drafts of known tokens.
#include <string_view>
#include <vector>

#include "messages.h"
#include "remote/protocol.h"
#include "remote/received_draft.h"
#include "require.h"

namespace outrider {
namespace {

void Check(std::string_view bytes) {
  constexpr Token kVocabulary = 100;
  if (bytes.empty()) return;
  const bool candidates = bytes[0] % 2 == 1;
  bytes.remove_prefix(1);
  ReceivedDraft received(kVocabulary, candidates);
  std::vector<Token> text(5, 1);
  size_t sent_length = text.size();
  int turn = 0;
  ForEachMessage<draft::v1::ToClient>(bytes, [&](const draft::v1::ToClient& message) {
    if (!received.Receive(message, sent_length).ok()) return false;
    ++turn;
    Draft draft;
    received.Advance(text);
    received.AppendTo(turn % 20, 0, draft);
    Require(draft.size() <= std::max(turn % 20, 0), "no more than asked for");
    Require(received.ahead() <= static_cast<size_t>(kMaxDraftTokens), "memory is bounded");
    for (const DraftToken& token : draft.tokens) {
      Require(token.token >= 0 && token.token < kVocabulary, "all tokens are known");
      Require(token.confidence >= 0 && token.confidence <= 1, "confidences are probabilities");
    }
    Require(draft.distributions.empty() || draft.distributions.size() == draft.tokens.size(), "all or none");
    // The text goes on as drafted, or otherwise.
    for (int i = 0; i < turn % 4 && i < draft.size(); ++i) text.push_back(draft.tokens[static_cast<size_t>(i)].token);
    if (turn % 3 == 0) text.push_back(static_cast<Token>(turn % kVocabulary));
    Require(received.Advance(text) <= text.size(), "tokens that agree are in the text");
    sent_length = text.size();
    return true;
  });
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outrider::Check(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
