// Any bytes as an HTTP request that arrives in pieces: how they are cut must not matter, limits must hold, and what
// httplib is given must be one request that ends where it ends.
#include <cstdint>
#include <string>
#include <string_view>

#include "http/request_reader.h"
#include "require.h"

namespace outrider {
namespace {

using State = RequestReader::State;

constexpr RequestLimits kLimits{.max_head_bytes = 2000, .max_body_bytes = 3000};

size_t Feed(RequestReader& reader, std::string_view bytes, size_t step) {
  size_t taken = 0;
  while (taken < bytes.size()) {
    const size_t count = reader.Take(bytes.substr(taken, step));
    if (count == 0) break;
    taken += count;
  }
  return taken;
}

std::string Message(const RequestReader& reader) {
  std::string all;
  for (const std::string_view part : {reader.head_text(), reader.body_prefix(), reader.body(), reader.body_suffix()}) {
    all += part;
  }
  return all;
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;
  if (size == 0) return 0;
  const size_t step = 1 + data[0] % 64;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  RequestReader whole(kLimits), pieces(kLimits);
  const size_t taken = Feed(whole, bytes, bytes.size());
  const size_t taken_in_pieces = Feed(pieces, bytes, step);
  Require(whole.state() == pieces.state(), "how the bytes are cut decides nothing");
  Require(whole.body().size() <= kLimits.max_body_bytes, "a body is within its limit");
  Require(whole.head_text().size() <= kLimits.max_head_bytes, "a head is within its limit");
  Require(whole.held_bytes() <= 2 * (kLimits.max_head_bytes + kLimits.max_body_bytes) + 16384, "memory is bounded");
  if (whole.state() != State::kComplete) return 0;
  Require(taken == taken_in_pieces && Message(whole) == Message(pieces), "a request ends in one place");
  Require(whole.must_close() == pieces.must_close(), "or is the last");

  // httplib reads the same request from the message.
  const std::string message = Message(whole);
  RequestReader again(kLimits);
  Require(Feed(again, message, message.size()) == message.size(), "the message is one request");
  Require(again.state() == State::kComplete && again.body() == whole.body(), "and the same one");
  return 0;
}
