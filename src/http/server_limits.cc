#include "http/server_limits.h"

#include <algorithm>
#include <chrono>

namespace outrider {
namespace {

constexpr int kMaxGenerations = 1024;
constexpr int kSpareWorkers = 16;  // for requests that do not generate, however many do

}  // namespace

int GenerationLimit(const HttpOptions& options) {
  return std::min(options.max_generations, kMaxGenerations);
}

ConnectionLimits LimitsOf(const HttpOptions& options) {
  const auto seconds = [](double value) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
  };
  ConnectionLimits limits;
  limits.idle = std::chrono::seconds(options.idle_seconds);
  limits.head = seconds(options.head_seconds);
  limits.body = seconds(options.body_seconds);
  limits.silence = std::chrono::seconds(options.timeout_seconds);
  limits.connections = options.max_connections;
  limits.connections_per_peer = options.max_connections_per_peer;
  limits.buffered_bytes = options.max_buffered_bytes;
  limits.request.max_body_bytes = options.max_body_bytes;
  limits.workers = GenerationLimit(options) + kSpareWorkers;
  return limits;
}

}  // namespace outrider
