// The event loop: descriptors, timers and posted tasks, driven by the threads that wait (leader/follower).
//
// At any time at most one thread leads: it waits in the kernel and runs what is ready. A thread that
// waits for its flag takes the lead if nobody has it, so a lone caller pays no hop to another
// thread; the others sleep, each on a futex of its own. A leaving thread hands the lead to the
// first whose flag is not set. If no caller is left, the engine's thread leads.
//
//   lead      means                            changes to
//   nobody    callers came and left just now   caller: one waits; engine: work is due, or no caller
//                                              has led for one to two look_intervals
//   caller    a thread in wait() leads         caller: handed on; nobody: none left
//   engine    the engine's thread leads        caller: taken by one that waits, if the engine sleeps
//                                              in the kernel (parked), else handed on by it
//
// What must hold:
//  1. Only the leader dispatches, and the lead never moves during a callback: nothing runs twice at
//     once.
//  2. A thread that adds work sees under the mutex whether the leader sleeps, and wakes it if so;
//     the leader looks for work under the mutex before it says that it sleeps. Nothing is
//     overlooked.
//  3. alarm_at_ is never later than the earliest timer while the leader sleeps, and a leader that does
//     not go on to listen for the alarm (lead_as_engine without `stay`) trusts the clock instead.
//  4. While nobody leads the engine's thread sleeps for a bounded time only.
//  5. Threads that a callback wakes start running when it returns, several by one system call:
//     woken one by one, each would run at once in the leader's place. So a callback must not wait
//     for them.
//  6. Callbacks run, and tasks are destroyed, outside the mutex. System calls under it are only
//     those that cannot block and whose order matters (epoll_ctl, timerfd_settime).
#pragma once

#include "runtime/fork_guard.hpp"
#include "runtime/poller.hpp"
#include "runtime/timer_heap.hpp"
#include "runtime/wait_line.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/reactor.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace holdfast::runtime {

// The watched descriptors by id. Ids are never used again: an event that the kernel reported for a
// watch that has ended since finds nothing here, even if the descriptor's number lives on.
struct watch {
  const int fd;
  bool readable;
  bool writable;
  spi::function<void(spi::readiness)> on_ready;
  std::thread::id runner;  // the thread that is inside on_ready
  bool running = false;
  bool awaited = false;  // somebody waits for on_ready to return
  bool ended = false;

  // Clears what is no longer asked for; false if nothing is left to report.
  [[nodiscard]] bool concerns(spi::readiness& readiness) const noexcept {
    readiness.readable = readiness.readable && readable;
    readiness.writable = readiness.writable && writable;
    return readiness.readable || readiness.writable || readiness.hung_up;
  }
};

// Not thread-safe. Watches are shared, since one may end itself from within its on_ready.
class watch_table {
 public:
  using watch_id = spi::reactor::watch_id;

  explicit watch_table(watch_id first) noexcept : next_(first) {}

  watch_id add(int fd, bool readable, bool writable, spi::function<void(spi::readiness)> on_ready) {
    auto made = std::make_shared<watch>(
        watch{fd, readable, writable, std::move(on_ready), {}, false, false, false});
    watches_.emplace(next_, std::move(made));
    return next_++;
  }
  // Null if there is none.
  [[nodiscard]] std::shared_ptr<watch> find(watch_id id) const {
    const auto found = watches_.find(id);
    return found == watches_.end() ? nullptr : found->second;
  }
  std::shared_ptr<watch> take(watch_id id) noexcept {
    const auto found = watches_.find(id);
    if (found == watches_.end()) return nullptr;
    std::shared_ptr<watch> taken = std::move(found->second);
    watches_.erase(found);
    return taken;
  }

  [[nodiscard]] std::size_t size() const noexcept { return watches_.size(); }

 private:
  std::unordered_map<watch_id, std::shared_ptr<watch>> watches_;
  watch_id next_;
};

// Thread-safe; the calls of spi::reactor mean what they mean there. None of them may be made in a
// forked child, where the mutex may be held forever; but a callback may fork, and its child comes
// out of wait() and serve() without touching anything.
//
// Shutdown: stop(), then the end of serve(), then clear(), so that no callback runs while what it
// refers to is destroyed. Owned by all threads that are inside.
class event_loop {
 public:
  using timer_id = spi::runtime::timer_id;
  using watch_id = spi::reactor::watch_id;
  using mutex_lock = std::unique_lock<std::mutex>;

  enum class lead : std::uint8_t { nobody, caller, engine };

  void post(spi::task work);
  timer_id at(time_point when, spi::task work);
  void cancel(timer_id timer) noexcept;
  watch_id watch(int fd, bool readable, bool writable,
                 spi::function<void(spi::readiness)> on_ready);
  void rewatch(watch_id id, bool readable, bool writable);
  void unwatch(watch_id id) noexcept;
  void expect(watch_id id) noexcept { expected_here = {this, id}; }

  // Aborts if it is called from within a callback of this loop.
  void wait(const std::atomic<bool>& flag);
  void wake(const std::atomic<bool>& flag) noexcept;

  // The body of the engine's thread; returns after stop().
  void serve();
  void stop() noexcept;
  void clear() noexcept;
  // In a forked child: closes the descriptors, and keeps the loop from ever being destroyed, since
  // the threads that were inside left its locks and its condition variable as they were.
  void abandon(std::shared_ptr<event_loop> itself) noexcept {
    poller_.close();
    itself_ = std::move(itself);
  }

  // For tests and metrics: how often any thread came back from the kernel, how many exceptions were
  // swallowed, how many threads wait and descriptors are watched, who leads.
  [[nodiscard]] std::uint64_t wakeups() const;
  [[nodiscard]] std::uint64_t swallowed() const noexcept;
  [[nodiscard]] std::size_t waiting() const;
  [[nodiscard]] std::size_t watching() const;
  [[nodiscard]] lead leader() const;

 private:
  // The engine's thread checks this often whether callers still drive.
  static constexpr duration look_interval = std::chrono::milliseconds(1);
  // After so many, descriptors have their turn.
  static constexpr std::size_t timers_per_round = 1'024;

  // A leader sleeps in the read of what it expects only if all descriptors were checked within the
  // first, and no timer is due within the second, which is longer than any such sleep.
  static constexpr duration unseen_limit = std::chrono::milliseconds(1);
  static constexpr duration undisturbed = std::chrono::milliseconds(20);

  enum class wake_target : std::uint8_t { none, leader, engine };

  // What a thread has said it expects.
  struct expectation {
    const event_loop* where;
    watch_id what;
  };

  // Leading. Functions that return bool: false if a callback forked and this is the child; the lock
  // is then not held and nothing may be touched.
  bool drive(mutex_lock& lock, const waiter& self, const void* flag);
  bool lead_as_engine(mutex_lock& lock, bool stay);
  bool run_round(mutex_lock& lock);
  bool run_task(mutex_lock& lock, spi::task work);
  [[nodiscard]] std::shared_ptr<runtime::watch> take_expected() noexcept;
  bool dispatch(mutex_lock& lock, const ready_batch& batch);
  bool call(mutex_lock& lock, std::shared_ptr<runtime::watch> watch, spi::readiness readiness);
  bool collect(mutex_lock& lock, poller::patience patience, ready_batch& batch);
  void set_alarm() noexcept;

  // Passing the lead on.
  void hand_to(mutex_lock& lock, waiter& next) noexcept;
  void leave(mutex_lock& lock, waiter& self, const void* flag) noexcept;
  bool park(mutex_lock& lock) noexcept;
  void stand_by(mutex_lock& lock, std::uint64_t& seen) noexcept;
  [[nodiscard]] bool work_waits() noexcept;

  // The thread to wake for new work, marked as woken. Signal it after unlocking.
  [[nodiscard]] wake_target rouse() noexcept;
  void signal(wake_target which) noexcept;

  static inline thread_local expectation expected_here{};  // by this thread

  const fork_guard guard_;
  poller poller_;
  wake_party called_;  // by the callback that runs: the leader's alone
  std::atomic<std::uint64_t> swallowed_{0};
  std::shared_ptr<event_loop> itself_;  // only where abandoned

  mutable std::mutex mutex_;
  std::condition_variable settled_;  // an awaited on_ready has returned
  // All below: guarded by mutex_.
  std::deque<spi::task> posted_;  // no limit of its own: what is posted is bounded elsewhere
  timer_heap timers_;
  time_point alarm_at_ = time_point::max();
  watch_table watches_{poller::first_id};
  wait_line line_;
  lead lead_ = lead::nobody;
  waiter* leader_ = nullptr;     // while a caller leads
  bool leader_asleep_ = false;   // a leading caller sleeps and was not roused
  bool engine_asleep_ = false;   // the engine's thread sleeps and was not roused
  bool engine_parked_ = false;   // it leads and sleeps: the lead may be taken from it
  bool engine_settled_ = false;  // it sleeps without limit: woken by a thread that leaves the lead
  time_point engine_up_at_ = time_point::max();  // standing by: when it looks again
  std::uint64_t drives_ = 0;                     // how often callers took or left the lead
  std::uint64_t wakeups_ = 0;
  time_point looked_at_{};  // when a leader last asked the kernel about all descriptors
  bool stopping_ = false;
};

}  // namespace holdfast::runtime
