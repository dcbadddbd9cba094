// Options, all aggregates with a default on every member: {.ttl = 10s}. Those that may appear in a
// co_await expression are trivially destructible: GCC 12 destroys aggregate temporaries of such an
// expression twice, so tokens, strings and callbacks are parameters of their own.
#pragma once

#include <holdfast/clock.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace holdfast {

enum class renew : std::uint8_t {
  automatic,  // while the lease lives, every third of its ttl
  never,      // taken once for ttl, ends by itself
};

// Spaces attempts while the engine does not answer; `wait` bounds them. Contention is not retried:
// it waits in the queue. One policy for everything that is retried: connections, claims, releases,
// latches (client_options::retry); a lock may have another for its claims (lock_options::retry).
struct retry_policy {
  std::uint32_t attempts = UINT32_MAX;             // tries in all; 1: never again
  duration first = std::chrono::milliseconds(50);  // full jitter: 0 to first, then doubled
  duration limit = std::chrono::seconds(2);        // the greatest step
  duration within = forever;  // without a usable answer for this long: given up

  static constexpr retry_policy never() { return {.attempts = 1}; }
  static constexpr retry_policy times(std::uint32_t n) { return {.attempts = n}; }
  static constexpr retry_policy exponential(duration first, duration limit) {
    return {.first = first, .limit = limit};
  }
  static constexpr retry_policy for_at_most(duration time) { return {.within = time}; }
};

// How a lock is held. Limits are checked when the lock object is made: errc::invalid.
struct lock_options {
  // How long the engine keeps the lock without a sign of life: 100 ms to 24 h.
  duration ttl = std::chrono::seconds(30);
  // Granted in the order in which the engine saw the claims. Unfair is faster: a free lock is taken
  // even though others wait.
  bool fair = false;
  holdfast::renew renew = holdfast::renew::automatic;
  // lost() fires this long before validity ends; less than ttl / 2.
  duration notice{0};
  // After an abnormal end (holder died, lease ran out) the lock stays blocked this long: for resources
  // that cannot check fences.
  duration lock_delay{0};
  // For its claims: acquiring, renewing and releasing it. None: the client's.
  std::optional<retry_policy> retry{};
  // The longest time that it is held, counted from its grant, however often it is renewed: then it
  // is lost, lost() having fired `notice` before, and it is released. So a holder that hangs does
  // not keep it forever. At least 100 ms and more than twice the notice.
  duration max_hold = forever;
  // Who holds or waits, for people who look; copied when the lock object is made. Empty: the client's. At
  // most 256 bytes; unprintable characters become '?'. An election has its id instead.
  std::string_view payload{};
};

// One acquisition.
struct acquire_options {
  // Zero or less: try once. Bounds contention and outage alike. An engine that this client has not
  // yet reached is waited for no longer than the URL's connect_timeout, 5 s by default; a try gives
  // a silent engine 1 s.
  duration wait = forever;
};

// A lease that another process has detached.
struct adopt_options {
  // The lease's from now on; zero: what it had.
  duration ttl{0};
  holdfast::renew renew = holdfast::renew::automatic;
  duration notice{0};           // as of lock_options
  duration max_hold = forever;  // from the adoption on
  // How long an engine that does not answer is retried. There are no other claims to wait for.
  duration wait = std::chrono::seconds(5);
};

static_assert(std::is_trivially_destructible_v<lock_options>);
static_assert(std::is_trivially_destructible_v<acquire_options>);
static_assert(std::is_trivially_destructible_v<adopt_options>);

}  // namespace holdfast
