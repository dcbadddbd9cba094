// Converts a limit given to the std face into a wait: any clock, any unit, any number of them.
#pragma once

#include <holdfast/clock.hpp>

#include <chrono>

namespace holdfast::detail {

// Rounded up. Zero for negative values; forever where nanoseconds cannot count that far and a cast
// would overflow.
template <class Rep, class Period>
constexpr duration patience_for(const std::chrono::duration<Rep, Period>& wait) {
  constexpr std::chrono::duration<double> longest = std::chrono::hours(24 * 365 * 250);
  const std::chrono::duration<double> about = wait;
  if (!(about > about.zero())) return duration{0};
  return about < longest ? std::chrono::ceil<duration>(wait) : forever;
}

// By that clock; zero if the moment has passed.
template <class Clock, class Duration>
duration patience_until(const std::chrono::time_point<Clock, Duration>& deadline) {
  const auto now = Clock::now();
  return deadline > now ? patience_for(deadline - now) : duration{0};
}

}  // namespace holdfast::detail
