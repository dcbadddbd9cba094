#include "stores/sqlite/inheritance.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace holdfast::sqlite {

namespace {

// A transaction takes microseconds, a stalled disk longer; but a foreign program may have the file
// locked. fork() does not wait for that, and only the child's own clients suffer.
constexpr auto fork_patience = std::chrono::seconds(2);

// Globals because SQLite's own lists are a property of the process.
constinit std::mutex door;             // held over a fork, and for a moment by who comes in
constinit std::atomic<int> inside{0};  // threads
constinit std::atomic<bool> forking{false};
constinit std::mutex calm_mutex;  // held over a fork: who leaves takes it, and is not in the child
std::condition_variable calm;     // nobody is inside; only who forks waits
constinit bool clean = true;      // guarded by door: nobody was inside at the fork
constinit std::atomic<bool> torn{false};
constinit thread_local int depth = 0;

}  // namespace

inside_sqlite::inside_sqlite() noexcept {
  if (depth++ > 0) return;
  const std::lock_guard lock(door);
  inside.fetch_add(1);
}

inside_sqlite::~inside_sqlite() {
  if (--depth > 0) return;
  if (inside.fetch_sub(1) != 1 || !forking.load()) return;
  const std::lock_guard lock(calm_mutex);
  calm.notify_one();
}

void inheritance::before_fork() noexcept {
  door.lock();
  forking.store(true);
  std::unique_lock lock(calm_mutex);
  // A thread that forks inside SQLite would wait for itself.
  clean = depth == 0 && calm.wait_for(lock, fork_patience, [] { return inside.load() == 0; });
  lock.release();
}

void inheritance::after_fork_in_parent() noexcept {
  forking.store(false);
  calm_mutex.unlock();
  door.unlock();
}

void inheritance::after_fork_in_child() noexcept {
  inside.store(depth > 0 ? 1 : 0);  // the others' threads are not here
  forking.store(false);
  if (!clean) torn.store(true);
  calm_mutex.unlock();
  door.unlock();
}

result<void> inheritance::check() {
  if (!torn.load()) return {};
  return failure(errc::unavailable,
                 "sqlite, this process was forked in the middle of its parent's transaction; "
                 "start a program in it (exec) to use the file there");
}

}  // namespace holdfast::sqlite
