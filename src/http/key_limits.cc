#include "http/key_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

KeyLimiter::Hit MakeHit(const ApiKey& key, const char* limit, int value, Duration wait) {
  const int seconds = std::max(1, static_cast<int>(std::ceil(Milliseconds(wait) / 1000)));
  return {{StatusCode::kResourceExhausted,
           fmt::format("'{}' has reached its limit {}={}; try again in {} s", key.name, limit, value, seconds)},
          seconds};
}

}  // namespace

double TokenBucket::LevelAt(TimePoint now) const {
  return std::min(per_minute_, level_ + per_minute_ * Milliseconds(now - updated_) / 60'000);
}

void TokenBucket::Take(double amount, TimePoint now) {
  level_ = LevelAt(now) - amount;
  updated_ = now;
}

Duration TokenBucket::TimeUntil(double level, TimePoint now) const {
  const double missing = level - LevelAt(now);
  if (missing <= 0) return Duration::zero();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(missing / per_minute_ * 60));
}

KeyLimiter::Usage& KeyLimiter::UsageOf(const ApiKey& key, TimePoint now) {
  const KeyLimits& limits = key.limits;
  return usage_
      .try_emplace(&key,
                   Usage{TokenBucket(limits.requests_per_minute, now), TokenBucket(limits.tokens_per_minute, now)})
      .first->second;
}

std::optional<KeyLimiter::Hit> KeyLimiter::TakeRequest(const ApiKey* key) {
  if (key == nullptr || key->limits.requests_per_minute == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  TokenBucket& bucket = UsageOf(*key, now).requests;
  if (const Duration wait = bucket.TimeUntil(1, now); wait > Duration::zero()) {
    return MakeHit(*key, "requests-per-minute", key->limits.requests_per_minute, wait);
  }
  bucket.Take(1, now);
  return std::nullopt;
}

std::optional<KeyLimiter::Hit> KeyLimiter::Begin(const ApiKey* key, std::shared_ptr<Lease>* lease) {
  if (key != nullptr) {
    const KeyLimits& limits = key->limits;
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    Usage& usage = UsageOf(*key, now);
    if (limits.slots > 0 && usage.running >= limits.slots) {
      return MakeHit(*key, "slots", limits.slots, Duration::zero());
    }
    if (limits.tokens_per_minute > 0) {
      const Duration wait = usage.tokens.TimeUntil(1, now);
      if (wait > Duration::zero()) return MakeHit(*key, "tokens-per-minute", limits.tokens_per_minute, wait);
    }
    ++usage.running;
  }
  *lease = std::make_shared<Lease>(*this, key);
  return std::nullopt;
}

void KeyLimiter::Charge(const ApiKey* key, int tokens) {
  if (key == nullptr || key->limits.tokens_per_minute == 0) return;
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  UsageOf(*key, now).tokens.Take(tokens, now);
}

void KeyLimiter::End(const ApiKey* key) {
  if (key == nullptr) return;
  const std::lock_guard lock(mutex_);
  --UsageOf(*key, clock_.Now()).running;
}

}  // namespace outrider
