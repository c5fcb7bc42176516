#include "scheduler/text_stream.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/utf8.h"

namespace outrider {
namespace {

GeneratedToken Piece(std::string piece) {
  return {0, std::move(piece), 0, {}};
}

struct Outcome {
  std::string text, matched;
  std::vector<std::string> chunks;
  size_t tokens = 0;
};

Outcome Replay(const std::vector<std::string>& pieces, std::vector<std::string> stops) {
  TextStream stream(std::move(stops));
  Outcome outcome;
  const auto release = [&](bool last) {
    Chunk chunk;
    stream.Release(last, &chunk);
    if (!chunk.text.empty()) outcome.chunks.push_back(chunk.text);
    outcome.text += chunk.text;
    outcome.tokens += chunk.tokens.size();
  };
  for (const std::string& piece : pieces) {
    if (stream.Append(Piece(piece))) break;
    release(false);
  }
  release(true);
  outcome.matched = stream.matched();
  return outcome;
}

TEST(TextStreamTest, PassesTextOnAtOnce) {
  EXPECT_EQ(Replay({"Hel", "lo", " you"}, {}).chunks, (std::vector<std::string>{"Hel", "lo", " you"}));
}

TEST(TextStreamTest, HoldsBackWhatMayBecomeAStopString) {
  const Outcome outcome = Replay({"one ", "EN", "D two"}, {"END"});
  EXPECT_EQ(outcome.text, "one ");
  EXPECT_EQ(outcome.matched, "END");
  EXPECT_EQ(outcome.tokens, 1U) << "tokens of the stop string are dropped";
  EXPECT_EQ(Replay({"one ", "EN", "OUGH"}, {"END"}).text, "one ENOUGH");
}

TEST(TextStreamTest, TheEarliestStopStringWins) {
  EXPECT_EQ(Replay({"abcdef"}, {"ef", "cd"}).text, "ab");
  EXPECT_EQ(Replay({"abcdef"}, {"ef", "cd"}).matched, "cd");
}

TEST(TextStreamTest, NeverCutsACharacter) {
  const Outcome outcome = Replay({"\xF0\x9F", "\x99\x82", "!"}, {});
  EXPECT_EQ(outcome.chunks, (std::vector<std::string>{"🙂", "!"}));
  EXPECT_EQ(outcome.tokens, 3U);
  EXPECT_EQ(Replay({"a\xF0\x9F"}, {}).text, "a") << "what never got whole is left out";
  EXPECT_EQ(Replay({"a\xF0\x9F", "b"}, {}).text,
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b")
      << "what never can is shown as such";
}

// Reference: the text up to the first token after which any stop string is in it, cut at the leftmost one.
std::string Reference(const std::vector<std::string>& pieces, const std::vector<std::string>& stops) {
  std::string text;
  for (const std::string& piece : pieces) {
    text += piece;
    size_t cut = std::string::npos;
    for (const std::string& stop : stops) cut = std::min(cut, text.find(stop));
    if (cut != std::string::npos) {
      text.resize(cut);
      break;
    }
  }
  text.resize(text.size() - IncompleteUtf8Tail(text));
  return ReplaceInvalidUtf8(text);
}

rc::Gen<std::vector<std::string>> Pieces(size_t count) {
  const auto piece =
      rc::gen::element<std::string>("a", "b", "ab", "ba", "aab", "\xC3", "\xA9", "é", "\xF0\x9F", "\x99\x82", "c", "");
  return rc::gen::container<std::vector<std::string>>(count, piece);
}

RC_GTEST_PROP(TextStreamTest, AgreesWithTheReference, ()) {
  const auto pieces = *Pieces(static_cast<size_t>(*rc::gen::inRange(0, 30)));
  const auto stops = *rc::gen::container<std::vector<std::string>>(
      static_cast<size_t>(*rc::gen::inRange(0, 4)),
      rc::gen::element<std::string>("ab", "aabb", "bab", "é", "ca", "bbb", "🙂a"));
  const Outcome outcome = Replay(pieces, stops);
  RC_ASSERT(outcome.text == Reference(pieces, stops));
  for (const std::string& chunk : outcome.chunks) RC_ASSERT(IsValidUtf8(chunk));
}

}  // namespace
}  // namespace outrider
