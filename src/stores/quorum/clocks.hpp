// What the members' clocks show now, as far as their answers told: a fence that is proposed near all
// of them is taken by all of them, and the grant needs one round trip instead of two.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace holdfast::quorum {

// Thread-safe.
class clocks {
 public:
  explicit clocks(std::size_t members) : ahead_(members) {
    for (auto& each : ahead_) each.store(unheard, std::memory_order_relaxed);
  }

  void heard(std::size_t member, time_point now, spi::server_time at) noexcept {
    if (at == spi::server_time{}) return;
    ahead_[member].store((at.time_since_epoch() - now.time_since_epoch()).count(),
                         std::memory_order_relaxed);
  }

  // Microseconds of the clock that is furthest ahead; 0: none was heard yet.
  [[nodiscard]] std::uint64_t proposal(time_point now) const noexcept {
    duration::rep furthest = unheard;
    for (const auto& each : ahead_) {
      furthest = std::max(furthest, each.load(std::memory_order_relaxed));
    }
    if (furthest == unheard) return 0;
    const auto shown =
        std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch() + duration(furthest));
    return shown.count() > 0 ? static_cast<std::uint64_t>(shown.count()) : 0;
  }

 private:
  static constexpr duration::rep unheard = std::numeric_limits<duration::rep>::min();

  std::vector<std::atomic<duration::rep>> ahead_;  // of our own clock
};

}  // namespace holdfast::quorum
