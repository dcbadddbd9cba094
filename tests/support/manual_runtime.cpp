#include "support/manual_runtime.hpp"

#include "support/times.hpp"

#include <stdexcept>

namespace holdfast::test {

namespace {

// More steps than any test needs at one moment: beyond that, tasks keep posting each other.
constexpr std::size_t step_limit = 1'000'000;

}  // namespace

manual_runtime::manual_runtime(std::uint64_t seed) : now_(test::at(0s)), random_state_(seed) {}

void manual_runtime::post(spi::task work) { posted_.push_back(std::move(work)); }

spi::runtime::timer_id manual_runtime::at(time_point when, spi::task work) {
  const timer_id id = next_timer_++;
  timers_.emplace(std::pair(when, id), std::move(work));
  times_.emplace(id, when);
  return id;
}

void manual_runtime::cancel(timer_id timer) noexcept {
  if (cancels_late_) return;
  const auto found = times_.find(timer);
  if (found == times_.end()) return;
  timers_.erase({found->second, timer});
  times_.erase(found);
}

std::uint64_t manual_runtime::random() {
  random_state_ += 0x9e3779b97f4a7c15ULL;  // splitmix64
  std::uint64_t z = random_state_;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

void manual_runtime::notify(spi::task work) { notifications_.push_back(std::move(work)); }

void manual_runtime::wait(const std::atomic<bool>& done) {
  for (std::size_t step = 0; !done; ++step) {
    if (step == step_limit) throw std::logic_error("waits for what never comes");
    if (run_one()) continue;
    if (timers_.empty()) throw std::logic_error("waits, and nothing is left to happen");
    now_ = std::max(now_, timers_.begin()->first.first);
  }
}

void manual_runtime::wake(const std::atomic<bool>&) noexcept {}

bool manual_runtime::run_one() {
  spi::task work;
  if (!posted_.empty()) {
    work = std::move(posted_.front());
    posted_.pop_front();
  } else if (!notifications_.empty() && !notifications_held_) {
    work = std::move(notifications_.front());
    notifications_.pop_front();
  } else if (!timers_.empty() && timers_.begin()->first.first <= now_) {
    work = std::move(timers_.begin()->second);
    times_.erase(timers_.begin()->first.second);
    timers_.erase(timers_.begin());
  } else {
    return false;
  }
  work();
  return true;
}

void manual_runtime::run_ready() {
  for (std::size_t step = 0; run_one(); ++step) {
    if (step == step_limit) throw std::logic_error("never comes to rest");
  }
}

void manual_runtime::run_until(time_point end) {
  run_ready();
  while (!timers_.empty() && timers_.begin()->first.first <= end) {
    now_ = std::max(now_, timers_.begin()->first.first);
    run_ready();
  }
  now_ = std::max(now_, end);
}

}  // namespace holdfast::test
