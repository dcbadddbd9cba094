// A runtime whose time is moved by hand: nothing happens until a test says so, and then in the
// order of the times, so that a test is exactly repeatable.
#pragma once

#include <holdfast/spi/runtime.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace holdfast::test {

// Not thread-safe, unlike other runtimes: tests of this kind have one thread.
class manual_runtime final : public spi::runtime {
 public:
  explicit manual_runtime(std::uint64_t seed = 1);

  // spi::runtime
  [[nodiscard]] time_point now() const noexcept override { return now_; }
  void post(spi::task work) override;
  timer_id at(time_point when, spi::task work) override;
  void cancel(timer_id timer) noexcept override;
  std::uint64_t random() override;
  void notify(spi::task work) override;
  [[nodiscard]] bool on_own_thread() const noexcept override { return false; }
  [[nodiscard]] bool forked() const noexcept override { return forked_; }
  void wait(const std::atomic<bool>& done) override;
  void wake(const std::atomic<bool>& done) noexcept override;

  // Runs everything that is due by now.
  void run_ready();
  // Lets time pass until then, running what becomes due on the way, each at its own time.
  void run_until(time_point end);
  void run_for(duration span) { run_until(now_ + span); }
  // Time passes and nothing runs: the process was stopped.
  void pause_for(duration span) { now_ += span; }

  // User code is slow: none of it runs until it is resumed.
  void hold_notifications(bool held) { notifications_held_ = held; }
  // Cancelled timers fire all the same, as they may.
  void cancel_too_late(bool late) { cancels_late_ = late; }
  // This is the child of a fork, or the parent again.
  void set_forked(bool forked) { forked_ = forked; }

  [[nodiscard]] std::size_t timers() const noexcept { return timers_.size(); }
  [[nodiscard]] std::size_t notifications() const noexcept { return notifications_.size(); }

 private:
  bool run_one();

  time_point now_;
  std::uint64_t random_state_;
  timer_id next_timer_ = 1;
  std::deque<spi::task> posted_;
  std::deque<spi::task> notifications_;
  std::map<std::pair<time_point, timer_id>, spi::task> timers_;
  std::map<timer_id, time_point> times_;
  bool notifications_held_ = false;
  bool cancels_late_ = false;
  bool forked_ = false;
};

}  // namespace holdfast::test
