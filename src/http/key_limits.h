// KeyLimiter: how much each API key has used, and whether it may go on. Requests and tokens per minute are token
// buckets that hold one minute's worth, so a key that was idle may use that much at once; slots are counted.
//
// Tokens are charged when they are known: those of the prompt when the generation begins, those of the answer as they
// are made. A bucket may therefore fall below zero; the next generation then waits until it is above.
//
// Thread-safe. The keys are those of ApiKeys and must outlive the limiter; a null key (no keys are required) has no
// limits.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "http/auth.h"

namespace outrider {

// Fills steadily up to `per_minute`, and is emptied by what is used.
class TokenBucket {
 public:
  TokenBucket(int per_minute, TimePoint now) : per_minute_(per_minute), level_(per_minute), updated_(now) {}

  void Take(double amount, TimePoint now);
  Duration TimeUntil(double level, TimePoint now) const;  // zero if at least that is there

 private:
  double LevelAt(TimePoint now) const;

  double per_minute_;
  double level_;
  TimePoint updated_;
};

class KeyLimiter {
 public:
  // Why a request is refused, and when it may be sent again.
  struct Hit {
    Status status;  // kResourceExhausted; names the key and the limit
    int retry_after_seconds;
  };

  // One generation of a key, while it lasts.
  class Lease {
   public:
    Lease(KeyLimiter& limiter, const ApiKey* key) : limiter_(limiter), key_(key) {}
    ~Lease() { limiter_.End(key_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    void ChargeTokens(int count) { limiter_.Charge(key_, count); }

   private:
    KeyLimiter& limiter_;
    const ApiKey* const key_;
  };

  explicit KeyLimiter(const Clock& clock = Clock::Real()) : clock_(clock) {}

  // A request has come.
  std::optional<Hit> TakeRequest(const ApiKey* key);

  // A generation is to begin. Sets *lease unless a limit is hit; the lease must not outlive the limiter.
  std::optional<Hit> Begin(const ApiKey* key, std::shared_ptr<Lease>* lease);

 private:
  struct Usage {
    TokenBucket requests;
    TokenBucket tokens;
    int running = 0;
  };

  Usage& UsageOf(const ApiKey& key, TimePoint now);
  void Charge(const ApiKey* key, int tokens);
  void End(const ApiKey* key);

  const Clock& clock_;
  std::mutex mutex_;
  std::map<const ApiKey*, Usage> usage_;  // guarded by mutex_
};

}  // namespace outrider
