// Counts requests without an answer: so many in a row, and the engine is taken for unreachable until it
// answers anything at all.
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::outage {

// Thread-safe.
//
//   state  | entered by                         | ends with
//   closed | start, an answer                   | `limit` failures in a row -> open
//   open   | the last of `limit` failures       | an answer, whatever it says -> closed
class breaker {
 public:
  explicit breaker(std::uint32_t limit) noexcept : limit_(limit) {}

  // True: it opened just now.
  bool failed() noexcept {
    const std::uint32_t failures = failures_.fetch_add(1, std::memory_order_acq_rel) + 1;
    return failures >= limit_ && !open_.exchange(true, std::memory_order_acq_rel);
  }
  // True: it closed just now.
  bool answered() noexcept {
    failures_.store(0, std::memory_order_release);
    return open_.load(std::memory_order_acquire) &&
           open_.exchange(false, std::memory_order_acq_rel);
  }
  [[nodiscard]] bool open() const noexcept { return open_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }

 private:
  const std::uint32_t limit_;
  std::atomic<std::uint32_t> failures_{0};
  std::atomic<bool> open_{false};
};

}  // namespace holdfast::outage
