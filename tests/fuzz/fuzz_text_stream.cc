// Any bytes as generated tokens and stop strings. The first byte says how many stop strings follow, each ended by 0xFF;
// the rest are tokens, separated by 0xFE. What TextStream lets go, piece by piece, must be the text up to the first
// stop string, found by looking at all of it at once.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "require.h"
#include "scheduler/text_stream.h"

namespace outrider {
namespace {

constexpr char kStopEnd = '\xFF', kTokenEnd = '\xFE';
constexpr size_t kMaxStops = 4;
constexpr size_t kMaxCutBytes = 3;  // bytes a character cut short can have

struct Input {
  std::vector<std::string> stops;   // not empty, as the API makes sure
  std::vector<std::string> pieces;  // of the tokens
};

std::string_view TakeUntil(char end, std::string_view* bytes) {
  const size_t length = std::min(bytes->find(end), bytes->size());
  const std::string_view taken = bytes->substr(0, length);
  bytes->remove_prefix(std::min(length + 1, bytes->size()));
  return taken;
}

Input ReadInput(std::string_view bytes) {
  Input input;
  if (bytes.empty()) return input;
  const size_t n_stops = static_cast<unsigned char>(bytes[0]) % (kMaxStops + 1);
  bytes.remove_prefix(1);
  for (size_t i = 0; i < n_stops; ++i) {
    const std::string_view stop = TakeUntil(kStopEnd, &bytes);
    if (!stop.empty()) input.stops.emplace_back(stop);
  }
  while (!bytes.empty()) input.pieces.emplace_back(TakeUntil(kTokenEnd, &bytes));
  return input;
}

struct Run {
  std::string text;           // all that was let go
  std::vector<Token> tokens;  // likewise
  size_t fed = 0;             // tokens appended
  bool stopped = false;
  std::string matched;
};

void Release(bool last, TextStream* stream, Run* run) {
  Chunk chunk;
  stream->Release(last, &chunk);
  Require(IsValidUtf8(chunk.text), "each piece of text is valid UTF-8");
  run->text += chunk.text;
  for (const GeneratedToken& token : chunk.tokens) run->tokens.push_back(token.token);
}

Run RunStream(const Input& input) {
  TextStream stream(input.stops);
  Run run;
  // What may become a stop string or a character, and before that a character which a stop string cut short.
  size_t most_held = kMaxCutBytes;
  for (const std::string& stop : input.stops) most_held = std::max(most_held, stop.size() - 1);
  most_held += kMaxCutBytes;
  std::vector<size_t> ends;
  while (run.fed < input.pieces.size() && !run.stopped) {
    GeneratedToken token;
    token.token = static_cast<Token>(run.fed);
    token.piece = input.pieces[run.fed];
    ends.push_back((ends.empty() ? 0 : ends.back()) + token.piece.size());
    ++run.fed;
    run.stopped = stream.Append(std::move(token));
    if (run.stopped) break;
    Release(/*last=*/false, &stream, &run);
    const size_t held = ends.size() - run.tokens.size();
    Require(held == 0 || ends[run.tokens.size()] + most_held > ends.back(),
            "text is held back only while it may become a character or a stop string");
  }
  Release(/*last=*/true, &stream, &run);
  run.matched = stream.matched();
  return run;
}

void Check(const Input& input) {
  const Run run = RunStream(input);
  std::string all;
  for (size_t i = 0; i < run.fed; ++i) all += input.pieces[i];

  size_t first_stop = std::string::npos;
  for (const std::string& stop : input.stops) first_stop = std::min(first_stop, all.find(stop));
  Require(run.stopped == (first_stop != std::string::npos), "it stops exactly if a stop string is there");
  std::string_view expected = std::string_view(all).substr(0, first_stop);
  expected.remove_suffix(IncompleteUtf8Tail(expected));
  Require(run.text == ReplaceInvalidUtf8(expected), "the text is all up to the stop string");
  if (run.stopped) {
    Require(all.compare(first_stop, run.matched.size(), run.matched) == 0, "the match is where the text ends");
    Require(all.find(run.matched) + run.matched.size() > all.size() - input.pieces[run.fed - 1].size(),
            "it stops with the first token that completes a stop string");
  }

  // Empty tokens at the stop string may or may not have been let go before it was recognised.
  size_t start = 0;
  for (size_t i = 0; i < run.fed; ++i) {
    if (i < run.tokens.size()) {
      Require(run.tokens[i] == static_cast<Token>(i), "tokens keep their order");
      Require(start < first_stop || (start == first_stop && input.pieces[i].empty()),
              "tokens past the stop are dropped");
    } else {
      Require(start >= first_stop, "tokens before the stop are kept");
    }
    start += input.pieces[i].size();
  }
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outrider::Check(outrider::ReadInput({reinterpret_cast<const char*>(data), size}));
  return 0;
}
