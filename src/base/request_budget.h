// What one request may ask for, in one place: the bounds that do not depend on the model and that nobody has needed to
// change. Those that users may need to change are flags. docs/SECURITY.md lists all of them with the reasons.
//
// The general rule: a request has a budget of bytes, of parsed values (base/json.h), of CPU time before it is admitted,
// and of memory while it waits and while it is answered. Each reader of a field keeps to it and names the limit in its
// error. Bounds of grammars and schemas, which follow from what libllama does with them, are in sampling/gbnf_*.cc and
// chat/check.cc.
#pragma once

#include <cstddef>

namespace outrider {

// Held while a request waits, and looked at for every token of its answer.
inline constexpr size_t kMaxListedBytes = 1024;     // of each string in a list (stop strings and the like)
inline constexpr size_t kMaxStopStrings = 16;       // of the OpenAI and llama.cpp protocols
inline constexpr size_t kMaxStopSequences = 64;     // of Anthropic's
inline constexpr size_t kMaxSequenceBreakers = 16;  // of DRY; each is looked for in the whole vocabulary
inline constexpr size_t kMaxLogitBiases = 4096;     // tokens

// Conversations.
inline constexpr size_t kMaxMessages = 4096;  // a template takes 0.2 ms for each, and one applies at a time
inline constexpr size_t kMaxTools = 256;
inline constexpr size_t kMaxAttachments = 32;  // pictures and sounds; each may become some megabytes of numbers

// Names of fields in an answer.
inline constexpr size_t kMaxResponseFields = 64;

// Held until the client has read it all. A streamed answer holds only what was not sent yet.
inline constexpr int kMaxProbabilities = 1000;          // alternatives of one token
inline constexpr int kMaxWholeAlternatives = 1 << 19;   // in an answer that is not streamed: about 200 MB
inline constexpr size_t kMaxTokenizedBytes = 2 << 20;   // of /tokenize: takes up to some seconds, and cannot be stopped
inline constexpr size_t kMaxListedTokens = 1 << 20;     // answers of /tokenize
inline constexpr size_t kMaxListedPieces = 1 << 17;     // the same with pieces
inline constexpr size_t kMaxEmbeddedNumbers = 1 << 23;  // of all vectors of an answer: about 250 MB while it is written
inline constexpr size_t kMaxDetokenizedBytes = 8 << 20;  // answers of /detokenize

}  // namespace outrider
