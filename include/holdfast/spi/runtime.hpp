// The seam to time, randomness and threads. Production has one on epoll and CLOCK_BOOTTIME; the
// simulator has one with virtual time. Nothing in core/ knows another source of either.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/function.hpp>

#include <atomic>
#include <cstdint>

namespace holdfast::spi {

using task = function<void()>;

// Thread-safe. Tasks must not block; they run outside any lock of the runtime.
class runtime {
 public:
  using timer_id = std::uint64_t;

  virtual ~runtime() = default;

  [[nodiscard]] virtual time_point now() const noexcept = 0;

  // Runs the task soon, on the engine's thread or on a thread that drives it.
  virtual void post(task work) = 0;

  // Runs the task at the time or shortly after. The id may be cancelled; cancelling a timer that is
  // just firing may come too late: tasks must tolerate that.
  virtual timer_id at(time_point when, task work) = 0;
  virtual void cancel(timer_id timer) noexcept = 0;

  // Uniform 64 bits, unpredictable in production (claim ids are made of them).
  virtual std::uint64_t random() = 0;

  // Runs user code: stop callbacks, completions, observers. A thread of its own, so that a slow
  // callback delays neither renewals nor the loss of another lease.
  virtual void notify(task work) = 0;

  // True on threads that must never block on a lock: the engine's and the notifier's, and a
  // caller's while it drives and runs a task.
  [[nodiscard]] virtual bool on_own_thread() const noexcept = 0;

  // True in a child that was forked from the process that made this runtime: its threads do not
  // exist there, and its descriptors are the parent's.
  [[nodiscard]] virtual bool forked() const noexcept { return false; }

  // Blocks the caller until `done` is true, driving the runtime's work itself if nobody else does:
  // a lone thread pays no hop to another. The thread that sets `done` calls wake() with it. Not to
  // be called from a task. Returns with `done` unset only if the runtime ends or this is a forked
  // child.
  virtual void wait(const std::atomic<bool>& done) = 0;
  virtual void wake(const std::atomic<bool>& done) noexcept = 0;
};

}  // namespace holdfast::spi
