// TextStream: from tokens to text that may be sent.
//
// Tokens end inside UTF-8 characters, and stop strings span tokens. So text is held back while its last bytes may still
// become a character or a stop string, and let go as soon as they cannot. Nothing that is let go is ever taken back.
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

  // Returns true if a stop string is complete with this token. Text and tokens from its first byte on are dropped then.
  bool Append(GeneratedToken token);

  // Moves what may be sent into `chunk`: text, and each token once the text up to its end is sent. `last`: all that is
  // left; a character that was cut short is left out.
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
