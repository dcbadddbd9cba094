// Every limit and default of the engine, by name.
#pragma once

#include <holdfast/clock.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace holdfast::core {

struct limits {
  duration min_ttl = std::chrono::milliseconds(100);
  duration max_ttl = std::chrono::hours(24);
  duration command = std::chrono::seconds(5);  // and at most ttl / 3
  // How long a try waits for a silent engine, if the URL has no connect_timeout.
  duration try_once = std::chrono::seconds(1);
  duration recheck = std::chrono::seconds(1);  // while queued, if the engine pushes
  // If it does not: adaptive, up to recheck.
  duration poll_first = std::chrono::milliseconds(10);
  duration take_up = std::chrono::milliseconds(100);  // a pushed grant, unless released before
  duration waiter_lease = std::chrono::seconds(30);
  duration renewal_slack = std::chrono::milliseconds(200);  // renewals this near go in one batch
  duration last_try = std::chrono::milliseconds(100);  // how long the try at the deadline may take
  duration local_hand_over = std::chrono::milliseconds(10);  // then the engine decides again
  std::uint32_t local_hand_overs = 32;
  duration turn = std::chrono::milliseconds(1);    // of a process, while others wait
  duration keep = std::chrono::microseconds(100);  // a released claim within a turn
  std::uint32_t keep_seldom = 64;  // one in so many releases, if no thread asks again
  // How long a name then rests if the engine does not report waiters: as long as it was in use
  // here, within these limits.
  duration least_rest = std::chrono::milliseconds(10);
  duration most_rest = std::chrono::milliseconds(50);
  std::size_t waiters = 100'000;  // per client, then overloaded
  std::size_t renewal_batch = 1'000;
  // Attempts and releases in flight at once, as the engine's answers allow; the others wait, unsent.
  std::size_t window_first = 32;
  std::size_t window_least = 16;
  std::size_t window_most = 65'536;
  std::size_t many_renewals = 64;  // a batch of so many takes its time from new claims
};

inline constexpr limits default_limits{};

// A command gets no longer than a third of the lease that depends on it.
constexpr duration command_limit(const limits& limit, duration ttl) noexcept {
  return std::min(limit.command, ttl / 3);
}

}  // namespace holdfast::core
