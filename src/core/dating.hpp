// When does a hold end, seen from here? Dated from before the request that proved it left, less the
// margin by which two clocks may differ in rate.
#pragma once

#include "core/mutant.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>

namespace holdfast::core {

// `wait` after `now`. The end of time where that cannot be counted, as with `forever`.
constexpr time_point end_of(time_point now, duration wait) noexcept {
  return wait >= time_point::max() - now ? time_point::max() : now + wait;
}

// Two clocks' rates may differ by this much over a lease: 1 % + 2 ms.
inline duration drift_margin(duration ttl) noexcept {
  if (mutated(mutant::margin_ignored)) return duration{0};
  return ttl / 100 + std::chrono::milliseconds(2);
}

// The end of validity of a hold that was proven by a request sent at `proven_at`.
inline time_point validity_end(time_point proven_at, duration ttl) noexcept {
  if (ttl == forever) return time_point::max();
  return proven_at + ttl - drift_margin(ttl);
}

// The last answer "you are waiting": when its request was sent, and what the server's clock said.
struct waiting_proof {
  time_point sent_at{};
  spi::server_time answered_at{};
};

// A pushed grant has no request to be dated from. It happened g - s0 after the server said
// "waiting", by the server's clock; we sent that request at t0, so it happened after
// t0 + 0.99 (g - s0), whenever we read of it. If it were dated at receipt, a process that was
// stopped across the push would trust its hold while the next holder has the lock.
inline time_point date_push(time_point receipt, const waiting_proof& proof,
                            spi::server_time granted_at) noexcept {
  if (mutated(mutant::push_dated_at_arrival)) return receipt;
  const duration since = granted_at - proof.answered_at;
  return std::min(receipt, proof.sent_at + since - std::chrono::abs(since) / 100);
}

}  // namespace holdfast::core
