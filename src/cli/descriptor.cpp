#include "cli/descriptor.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace holdfast::cli {

alarm_clock::alarm_clock() : file_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!file_) throw std::system_error(errno, std::system_category(), "timerfd_create");
}

void alarm_clock::set(time_point when) noexcept {
  itimerspec spec{};
  if (when != time_point::max()) {
    // Zero would switch it off.
    const auto since = std::max<duration::rep>(1, when.time_since_epoch().count());
    spec.it_value.tv_sec = static_cast<time_t>(since / 1'000'000'000);
    spec.it_value.tv_nsec = static_cast<long>(since % 1'000'000'000);
  }
  ::timerfd_settime(file_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

}  // namespace holdfast::cli
