// A timer on CLOCK_BOOTTIME, which goes on counting while the machine is suspended: a time-out of
// poll() would be late by the suspend.
#pragma once

#include "cli/descriptor.hpp"

#include <holdfast/clock.hpp>

namespace holdfast::cli {

// Not thread-safe.
class alarm_clock {
 public:
  alarm_clock();

  // Readable from then on; time_point::max(): never.
  void set(time_point when) noexcept;
  [[nodiscard]] int get() const noexcept { return file_.get(); }

 private:
  descriptor file_;
};

}  // namespace holdfast::cli
