// TextStream: from tokens to text that may be sent.
//
// Tokens may end inside a UTF-8 character, and stop strings may span tokens. So the last bytes of the text are held
// back as long as they may be the beginning of a character or of a stop string. Text that was released is final.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "scheduler/generation.h"

namespace outrider {

class TextStream {
 public:
  TextStream() = default;
  explicit TextStream(std::vector<std::string> stop_strings) : stop_strings_(std::move(stop_strings)) {}

  // Returns true if this token completes a stop string. Then text and tokens from the stop string's first byte on are
  // removed.
  bool Append(GeneratedToken token);

  // Moves everything that may be sent into `chunk`: text, and each token whose text is completely sent. `last`: nothing
  // is held back any more; an incomplete character at the end is left out.
  void Release(bool last, Chunk* chunk);

  const std::string& matched() const { return matched_; }  // the stop string that ended it

 private:
  size_t HeldBack() const;

  struct PendingToken {
    size_t end;  // where its bytes end, counted from the first byte ever appended
    GeneratedToken token;
  };

  std::vector<std::string> stop_strings_;
  std::string pending_;  // bytes not sent yet
  size_t sent_ = 0;      // bytes sent so far
  std::deque<PendingToken> tokens_;
  std::string matched_;
};

}  // namespace outrider
