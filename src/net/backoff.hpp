// When to try again: full jitter, so that the many clients of a server that comes back do not
// reconnect at the same moment.
#pragma once

#include <holdfast/clock.hpp>

#include <algorithm>
#include <cstdint>

namespace holdfast::net {

struct backoff_limits {
  duration first = std::chrono::milliseconds(50);
  duration longest = std::chrono::seconds(2);
};

// Not thread-safe.
class backoff {
 public:
  explicit backoff(backoff_limits limits = {}) noexcept : limits_(limits), ceiling_(limits.first) {}

  // Uniform in [0, ceiling], which doubles each time. `random`: 64 uniform bits.
  duration next(std::uint64_t random) noexcept {
    const auto range = static_cast<std::uint64_t>(std::max<duration::rep>(ceiling_.count(), 0)) + 1;
    ceiling_ = std::min(ceiling_ * 2, limits_.longest);
    return duration(static_cast<duration::rep>(random % range));
  }
  // A success that lasted longer than the pause before it starts the pauses over. A connection that
  // broke at once does not, so that the retries are never faster than the failures.
  void succeeded(duration lasted) noexcept {
    if (lasted >= ceiling_) ceiling_ = limits_.first;
  }

 private:
  backoff_limits limits_;
  duration ceiling_;
};

}  // namespace holdfast::net
