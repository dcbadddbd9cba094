#include "stores/sqlite/descriptor.hpp"

#include "runtime/fork_guard.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace holdfast::sqlite {

namespace {

// Globals because descriptors and SQLite's own lists are a property of the process, and
// constant-initialised and trivially destructible so that neither the order of static objects nor a
// fork in the middle of a first use matters.

// --- descriptors ---------------------------------------------------------------------------------

constinit std::mutex fork_mutex;
constinit std::array<std::uint64_t, descriptor::limit / 64> tracked{};  // guarded by fork_mutex

void close_all_in_child() noexcept {
  for (std::size_t word = 0; word < tracked.size(); ++word) {
    while (tracked[word] != 0) {
      const int bit = std::countr_zero(tracked[word]);
      tracked[word] &= tracked[word] - 1;
      // Closed, never unlocked: an unlock would act on the description that
      // is shared with the parent.
      ::close(static_cast<int>(word * 64) + bit);
    }
  }
}

std::uint64_t& word_of(int number) noexcept {
  return tracked[static_cast<std::size_t>(number) / 64];
}

std::uint64_t bit_of(int number) noexcept {
  return std::uint64_t{1} << (static_cast<unsigned>(number) % 64U);
}

// --- SQLite --------------------------------------------------------------------------------------

// A transaction takes microseconds, a stalled disk longer; but a foreign program may have the file
// locked. fork() does not wait for that, and only the child's own clients are affected.
constexpr auto fork_patience = std::chrono::seconds(2);

constinit std::mutex door;  // held during a fork, and briefly by entering threads
constinit std::atomic<int> threads_inside{0};
constinit std::atomic<bool> forking{false};
constinit std::mutex calm_mutex;  // held during a fork; leaving threads take it; the child has none
std::condition_variable calm;     // nobody is inside; only a forking thread waits
constinit bool clean = true;      // guarded by door: nobody was inside at the fork
constinit std::atomic<bool> torn{false};
constinit thread_local int depth = 0;

void keep_out() noexcept {
  door.lock();
  forking.store(true);
  std::unique_lock lock(calm_mutex);
  // A thread that forks while inside SQLite would wait for itself.
  clean =
      depth == 0 && calm.wait_for(lock, fork_patience, [] { return threads_inside.load() == 0; });
  lock.release();
}

void let_in() noexcept {
  forking.store(false);
  calm_mutex.unlock();
  door.unlock();
}

// At load time, not at first use: see above. SQLite first, since threads
// inside it create descriptors.
[[maybe_unused]] const int registered = ::pthread_atfork(
    [] {
      keep_out();
      fork_mutex.lock();
    },
    [] {
      fork_mutex.unlock();
      let_in();
    },
    [] {
      close_all_in_child();
      fork_mutex.unlock();
      threads_inside.store(depth > 0 ? 1 : 0);  // the other threads do not exist here
      if (!clean) torn.store(true);
      let_in();
    });

}  // namespace

std::uint64_t fork_generation() noexcept { return runtime::fork_generation(); }

descriptor::fork_lock::fork_lock() noexcept { fork_mutex.lock(); }
descriptor::fork_lock::~fork_lock() { fork_mutex.unlock(); }

descriptor descriptor::enter(int number) noexcept {
  descriptor made;
  if (number < 0) return made;
  if (number >= limit) {
    ::close(number);
    errno = EMFILE;
    return made;
  }
  word_of(number) |= bit_of(number);
  made.number_ = number;
  return made;
}

void descriptor::close() noexcept {
  const int number = std::exchange(number_, -1);
  if (number < 0 || born_ != fork_generation()) return;
  const fork_lock lock;
  word_of(number) &= ~bit_of(number);
  ::close(number);
}

inside_sqlite::inside_sqlite() noexcept {
  if (depth++ > 0) return;
  const std::lock_guard lock(door);
  threads_inside.fetch_add(1);
}

inside_sqlite::~inside_sqlite() {
  if (--depth > 0) return;
  if (threads_inside.fetch_sub(1) != 1 || !forking.load()) return;
  const std::lock_guard lock(calm_mutex);
  calm.notify_one();
}

result<void> check_inheritance() {
  if (!torn.load()) return {};
  return failure(errc::unavailable,
                 "sqlite, this process was forked in the middle of its parent's transaction; "
                 "start a program in it (exec) to use the file there");
}

}  // namespace holdfast::sqlite
