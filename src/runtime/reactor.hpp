// The production reactor: an event loop with an engine's thread, a notifier, and randomness. Why it
// is our own: docs/decisions/0002-own-reactor.md.
#pragma once

#include "runtime/event_loop.hpp"
#include "runtime/fork_guard.hpp"
#include "runtime/notifier.hpp"

#include <holdfast/spi/reactor.hpp>

#include <memory>
#include <thread>

namespace holdfast::runtime {

// Thread-safe.
//
// In a forked child it is inert: nothing runs, post() and notify() drop their task, wait() returns
// at once whether its flag is set or not, and the parent's epoll instance is not touched.
//
// Shutdown, in the destructor: waiting calls return; the engine's thread ends; the notifier runs
// what it was given, and ends; what was posted, timed or watched is destroyed without being called.
// A thread is joined, or left to end by itself where the destructor runs on it. A caller may end
// the reactor from a task that it runs while it drives.
class epoll_reactor final : public spi::reactor {
 public:
  epoll_reactor();
  ~epoll_reactor() override;
  epoll_reactor(const epoll_reactor&) = delete;
  epoll_reactor& operator=(const epoll_reactor&) = delete;

  [[nodiscard]] time_point now() const noexcept override;
  void post(spi::task work) override;
  timer_id at(time_point when, spi::task work) override;
  void cancel(timer_id timer) noexcept override;
  std::uint64_t random() override;
  void notify(spi::task work) override;
  // True also on a caller's thread while it drives: a task that it runs must not block either.
  [[nodiscard]] bool on_own_thread() const noexcept override;
  [[nodiscard]] bool forked() const noexcept override { return guard_.forked(); }
  void wait(const std::atomic<bool>& done) override;
  void wake(const std::atomic<bool>& done) noexcept override;
  // Hang-ups are reported whatever was asked for: a watch on a closed descriptor must end.
  watch_id watch(int fd, bool readable, bool writable,
                 spi::function<void(spi::readiness)> on_ready) override;
  void rewatch(watch_id id, bool readable, bool writable) override;
  void unwatch(watch_id id) noexcept override;
  void expect(watch_id id) noexcept override;

  // For tests and metrics.
  [[nodiscard]] const event_loop& loop() const noexcept { return *loop_; }
  [[nodiscard]] const notifier& callbacks() const noexcept { return notifier_; }

 private:
  const fork_guard guard_;
  std::shared_ptr<event_loop> loop_;
  notifier notifier_;
  std::unique_ptr<std::jthread> engine_;
};

}  // namespace holdfast::runtime
