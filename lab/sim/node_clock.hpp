// The clock of one machine of a world: it starts anywhere, runs a little fast or slow, and the
// server's may be set to another time. True time is what the world counts from its beginning.
#pragma once

#include <holdfast/clock.hpp>

namespace holdfast::sim {

// True time since the world began.
using moment = duration;

class node_clock {
 public:
  constexpr node_clock() noexcept = default;
  constexpr node_clock(duration start, std::int64_t rate_per_million) noexcept
      : start_(start), rate_(rate_per_million) {}

  // What the clock shows.
  [[nodiscard]] constexpr duration shows(moment now) const noexcept {
    return start_ + now + duration(now.count() * rate_ / per_million);
  }

  // The earliest true time at which it shows `reading` or more.
  [[nodiscard]] constexpr moment when(duration reading) const noexcept {
    const duration since = reading - start_;
    moment guess = since - duration(since.count() * rate_ / per_million);
    for (int step = 0; step < refinements; ++step) guess += reading - shows(guess);
    while (shows(guess) < reading) guess += duration(1);
    return guess;
  }

  constexpr void jump(duration by) noexcept { start_ += by; }

 private:
  static constexpr int refinements = 4;
  // Whole nanoseconds: a world may last a month before this overflows.
  static constexpr std::int64_t per_million = 1'000'000;

  duration start_{};
  std::int64_t rate_ = 0;  // microseconds too fast per second
};

}  // namespace holdfast::sim
