// The only clock that decides anything on the client: CLOCK_BOOTTIME. It never jumps and, unlike
// std::chrono::steady_clock on Linux, continues while the machine is suspended. So a lease that
// ended during a suspend is invalid for its holder at the first check.
#pragma once

#include <chrono>

namespace holdfast {

using duration = std::chrono::nanoseconds;

struct clock {
  using duration = holdfast::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<clock, duration>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

using time_point = clock::time_point;

// "No limit": the default of every wait.
inline constexpr duration forever = duration::max();

}  // namespace holdfast
