// holdfast::clock on CLOCK_BOOTTIME.
#include <holdfast/clock.hpp>

#include <time.h>

namespace holdfast {

clock::time_point clock::now() noexcept {
  timespec now{};
  // Cannot fail: the clock exists on every supported kernel and the address is ours.
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace holdfast
