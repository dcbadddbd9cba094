#include "sim/sim_runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace holdfast::sim {

void sim_runtime::post(spi::task work) {
  loop_.at(loop_.now(), process_, event_class::timer, std::move(work));
}

spi::runtime::timer_id sim_runtime::at(time_point when, spi::task work) {
  const moment due = std::max(loop_.now(), process_.clock().when(when.time_since_epoch()));
  return loop_.at(due + random_.between(duration{0}, late_.timer), process_, event_class::timer,
                  std::move(work));
}

void sim_runtime::notify(spi::task work) {
  last_notice_ = std::max(last_notice_, loop_.now() + random_.between(duration{0}, late_.notice));
  loop_.at(last_notice_, process_, event_class::timer, std::move(work), event_loop::notices);
}

void sim_runtime::wait(const std::atomic<bool>&) { std::abort(); }
void sim_runtime::wake(const std::atomic<bool>&) noexcept { std::abort(); }

}  // namespace holdfast::sim
