// How many renewals go in one call. A server that works on one call says nothing meanwhile: a call must not
// take so long that the server is taken for dead. But each is a transaction, whose end may cost more than the
// renewals in it: they are as large as the time allows.
#pragma once

#include <holdfast/clock.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace holdfast::sql {

// Thread-safe.
class renewal_pace {
 public:
  static constexpr std::size_t fewest = 16;
  static constexpr std::size_t first = 64;
  static constexpr std::size_t most = 1'000;

  [[nodiscard]] std::size_t per_call() const noexcept {
    return per_call_.load(std::memory_order_relaxed);
  }

  // A call of so many, which had `allowed` for it, was worked on for so long.
  void took(duration time, std::size_t claims, duration allowed) noexcept {
    const std::size_t now = per_call();
    if (time > allowed / 4) {
      per_call_.store(std::clamp(claims / 2, fewest, now), std::memory_order_relaxed);
    } else if (time < allowed / 8 && claims >= now) {
      per_call_.store(std::min(now * 2, most), std::memory_order_relaxed);
    }
  }

 private:
  std::atomic<std::size_t> per_call_{first};
};

}  // namespace holdfast::sql
