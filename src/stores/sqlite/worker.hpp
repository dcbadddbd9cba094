// One thread for verbs that are called where nothing may block: on the timers' thread. A
// transaction may wait for the writer lock, a foreign program or the disk.
#pragma once

#include "runtime/service_thread.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::sqlite {

// Thread-safe. The thread starts with the first job. close() refuses jobs that have not begun and
// waits for those that have (unless it is called by a job).
class worker {
 public:
  static constexpr std::size_t queue_limit = 200'000;

  // Called once: without an error on the worker's thread, or refused, on any.
  //
  // A job that has not begun by its deadline is never begun: its answer "unavailable" is then
  // definite, and nothing happens later without the caller's knowledge.
  using job = spi::function<void(const result<void>& begun)>;

  explicit worker(std::shared_ptr<spi::reactor> reactor) : reactor_(std::move(reactor)) {}
  ~worker() { close(); }
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  void post(time_point deadline, job work) {
    auto made = std::make_shared<entry>();
    made->work = std::move(work);
    {
      const std::lock_guard lock(state_->mutex);
      if (!state_->closed && state_->jobs.size() < queue_limit && (thread_ || start())) {
        made->timer = reactor_->at(deadline, [made] { made->call(too_late()); });
        state_->jobs.push_back(std::exchange(made, nullptr));
      }
    }
    if (made) return made->call(failure(errc::overloaded, "sqlite, too many operations wait"));
    state_->changed.notify_one();
  }

  void close() noexcept {
    std::deque<std::shared_ptr<entry>> refused;
    std::unique_ptr<std::jthread> thread;
    {
      const std::lock_guard lock(state_->mutex);
      state_->closed = true;
      refused.swap(state_->jobs);
      thread = std::move(thread_);
    }
    state_->changed.notify_all();
    for (const auto& each : refused) {
      reactor_->cancel(each->timer);
      each->call(too_late());
    }
    runtime::end_service(std::move(thread));
  }

 private:
  struct entry {
    job work;
    std::atomic<bool> taken{false};
    spi::reactor::timer_id timer = 0;

    void call(const result<void>& begun) {
      if (!taken.exchange(true)) work(begun);
    }
  };
  struct state {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<entry>> jobs;  // guarded by mutex
    bool closed = false;                      // guarded by mutex
  };

  static result<void> too_late() { return failure(errc::unavailable, "sqlite, not begun in time"); }

  // Under state_->mutex. False: no thread can be created now.
  bool start() {
    try {
      // The thread keeps both alive, as it may have to outlive this object.
      thread_ = runtime::start_service("holdfast-sqlite",
                                       [of = state_, reactor = reactor_] { serve(of, *reactor); });
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }

  static void serve(const std::shared_ptr<state>& of, spi::reactor& reactor) {
    std::unique_lock lock(of->mutex);
    for (;;) {
      of->changed.wait(lock, [&] { return of->closed || !of->jobs.empty(); });
      if (of->jobs.empty()) return;
      std::shared_ptr<entry> next = std::move(of->jobs.front());
      of->jobs.pop_front();
      lock.unlock();
      reactor.cancel(next->timer);
      next->call({});
      next.reset();  // its captures are destroyed here, not under the mutex
      lock.lock();
    }
  }

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<state> state_ = std::make_shared<state>();
  std::unique_ptr<std::jthread> thread_;  // guarded by state_->mutex
};

}  // namespace holdfast::sqlite
