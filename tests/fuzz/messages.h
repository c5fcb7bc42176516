// Any bytes as a row of protobuf messages: a byte says how long the next one is.
#pragma once

#include <algorithm>
#include <string_view>

namespace outrider {

// Calls `take(message)` for each part of `bytes` that can be read as a `Message`, until it returns false.
template <typename Message, typename Take>
void ForEachMessage(std::string_view bytes, Take take) {
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(static_cast<unsigned char>(bytes[0]), bytes.size() - 1);
    Message message;
    const bool read = message.ParseFromArray(bytes.data() + 1, static_cast<int>(size));
    bytes.remove_prefix(1 + size);
    if (read && !take(message)) return;
  }
}

}  // namespace outrider
