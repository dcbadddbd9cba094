// The thread for user code: stop callbacks, completions, observers. Apart from the engine's, so that
// a slow callback delays no renewal and no other lease's loss.
#pragma once

#include "runtime/fork_guard.hpp"

#include <holdfast/spi/runtime.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace holdfast::runtime {

// Thread-safe. Tasks run one after the other, in order; what they throw is swallowed and counted.
//
// Nothing is ever dropped, and notify() never blocks: a lost "your lease is gone" would be two
// holders, a blocked engine would be all leases lost. So queue_limit is a soft limit: beyond it
// tasks are still accepted, and lagging() tells the code that admits new work to refuse it
// (errc::overloaded). That bounds the queue: a few tasks per lease and per waiting acquisition.
//
// Shutdown: stop() runs what was queued before, then joins; called from one of the tasks, it leaves
// the thread to end by itself after them.
class notifier {
 public:
  static constexpr std::size_t queue_limit = 65'536;

  // `owner`: whose thread this is, for own_thread; the thread keeps it.
  explicit notifier(std::shared_ptr<const void> owner);
  ~notifier();
  notifier(const notifier&) = delete;
  notifier& operator=(const notifier&) = delete;

  void notify(spi::task work);
  void stop() noexcept;
  // In a forked child, where the thread does not exist: forgets it and what was queued.
  void abandon() noexcept;

  [[nodiscard]] bool lagging() const noexcept;
  [[nodiscard]] std::uint64_t swallowed() const noexcept;

 private:
  // Outlives the notifier where the thread does.
  struct state {
    const fork_guard guard;
    std::atomic<std::size_t> queued{0};
    std::atomic<std::uint64_t> swallowed{0};
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<spi::task> queue;    // guarded by mutex
    bool stopping = false;          // guarded by mutex
    std::shared_ptr<state> itself;  // only where abandoned: never destroyed
  };

  static void run(state& state);

  std::shared_ptr<state> state_;
  std::unique_ptr<std::jthread> thread_;
};

}  // namespace holdfast::runtime
