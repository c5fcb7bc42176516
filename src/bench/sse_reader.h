// SseReader: the data of server-sent events, out of the bytes of an answer as they arrive.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace outrider {

class SseReader {
 public:
  explicit SseReader(std::function<void(std::string_view data)> take) : take_(std::move(take)) {}

  // Calls `take` with the data of each event that ends in these bytes. False, from then on, if an event is longer than
  // any honest one.
  bool Feed(std::string_view bytes);

 private:
  void TakeLine(std::string_view line);

  static constexpr size_t kMaxBytes = 16 << 20;

  const std::function<void(std::string_view)> take_;
  std::string line_;  // not ended yet
  std::string data_;  // of the event so far
  bool has_data_ = false;
};

}  // namespace outrider
