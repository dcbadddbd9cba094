// One thread for verbs that are called where nothing may block: on the thread that owns the timers.
// A transaction may wait for the writer lock, a foreign program or the disk.
//
// A job that has not begun by its deadline is not begun any more: its answer "unavailable" is then
// definite, and nothing happens later behind the back of who asked.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/reactor.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace holdfast::sqlite {

// Thread-safe. The thread starts with the first job. close() refuses what has not begun and waits
// for what has (unless it is called by a job).
class worker {
 public:
  static constexpr std::size_t queue_limit = 200'000;

  explicit worker(std::shared_ptr<spi::reactor> reactor);
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  // Calls either `run`, on the worker's thread, or `refuse`, on any, once. False, and neither: the
  // queue is full or closed.
  bool post(time_point deadline, spi::task run, spi::task refuse);
  void close() noexcept;
  // In a forked child: the thread is not there.
  void abandon() noexcept;

 private:
  struct job {
    spi::task run;
    spi::task refuse;
    std::atomic<bool> taken{false};
    spi::reactor::timer_id timer = 0;
  };
  struct state {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<job>> jobs;  // guarded by mutex
    bool closed = false;                    // guarded by mutex
  };

  bool start();  // under state_->mutex
  static void serve(const std::shared_ptr<state>& of, spi::reactor& reactor);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<state> state_ = std::make_shared<state>();
  std::unique_ptr<std::jthread> thread_;  // guarded by state_->mutex
};

}  // namespace holdfast::sqlite
