// Counts requests without an answer: so many in a row, and the engine is doubted; if it does not answer a
// plain look then either, it is taken for unreachable until it answers anything at all.
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::outage {

// Thread-safe.
//
//   state   | entered by                      | ends with
//   closed  | start, an answer                | `limit` failures in a row -> doubted
//   doubted | the last of `limit` failures    | an answer -> closed; a failed look -> open
//   open    | a failed look                   | an answer, whatever it says -> closed
class breaker {
 public:
  explicit breaker(std::uint32_t limit) noexcept : limit_(limit) {}

  // True: the engine is doubted from now on.
  bool failed() noexcept {
    const std::uint32_t failures = failures_.fetch_add(1, std::memory_order_acq_rel) + 1;
    return failures >= limit_ && moves(state::closed, state::doubted);
  }
  // True: it opened just now.
  bool looked_in_vain() noexcept { return moves(state::doubted, state::open); }
  // True: it was open until now.
  bool answered() noexcept {
    failures_.store(0, std::memory_order_release);
    return !closed() && state_.exchange(state::closed, std::memory_order_acq_rel) == state::open;
  }
  [[nodiscard]] bool open() const noexcept {
    return state_.load(std::memory_order_acquire) == state::open;
  }
  [[nodiscard]] bool closed() const noexcept {
    return state_.load(std::memory_order_acquire) == state::closed;
  }
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }

 private:
  enum class state : std::uint8_t { closed, doubted, open };

  bool moves(state from, state to) noexcept {
    return state_.compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }

  const std::uint32_t limit_;
  std::atomic<std::uint32_t> failures_{0};
  std::atomic<state> state_{state::closed};
};

}  // namespace holdfast::outage
