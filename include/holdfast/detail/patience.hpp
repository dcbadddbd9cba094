// Converts a limit given to the std face into a wait: any clock, any unit, any number of them.
#pragma once

#include <holdfast/clock.hpp>

#include <chrono>

namespace holdfast::detail {

// Nanoseconds count to 292 years, and some clocks have counted since 1970.
inline constexpr std::chrono::duration<double> longest_counted = std::chrono::hours(24 * 365 * 200);

// Rounded up. Zero for negative values; forever where nanoseconds cannot count that far and a cast
// would overflow.
template <class Rep, class Period>
constexpr duration patience_for(const std::chrono::duration<Rep, Period>& wait) {
  const std::chrono::duration<double> about = wait;
  if (!(about > about.zero())) return duration{0};
  return about < longest_counted ? std::chrono::ceil<duration>(wait) : forever;
}

// By that clock; zero if the moment has passed.
template <class Clock, class Duration>
duration patience_until(const std::chrono::time_point<Clock, Duration>& deadline) {
  // As fractions of a second first: nanoseconds cannot count to a clock's last second.
  using fractions = std::chrono::duration<double>;
  const auto now = Clock::now();
  const fractions about = fractions(deadline.time_since_epoch()) - now.time_since_epoch();
  if (about > longest_counted) return forever;
  if (about < -longest_counted) return duration{0};
  return deadline > now ? patience_for(deadline - now) : duration{0};
}

}  // namespace holdfast::detail
