#include "stores/sqlite/descriptor.hpp"

#include "runtime/fork_guard.hpp"
#include "stores/sqlite/inheritance.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <mutex>

namespace holdfast::sqlite {

namespace {

// Globals because descriptors are a property of the process, and constant-initialised and trivially
// destroyed so that neither the order of static objects nor a fork in the middle of a first use
// matters.
constinit std::mutex fork_mutex;
constinit std::array<std::uint64_t, descriptor::limit / 64> tracked{};  // guarded by fork_mutex

void close_all_in_child() noexcept {
  for (std::size_t word = 0; word < tracked.size(); ++word) {
    while (tracked[word] != 0) {
      const int bit = std::countr_zero(tracked[word]);
      tracked[word] &= tracked[word] - 1;
      // Closed, never unlocked: an unlock would act on the description that the parent has too.
      ::close(static_cast<int>(word * 64) + bit);
    }
  }
}

// At load time, not at first use: see above. SQLite first, since who is inside makes descriptors.
[[maybe_unused]] const int registered = ::pthread_atfork(
    [] {
      inheritance::before_fork();
      fork_mutex.lock();
    },
    [] {
      fork_mutex.unlock();
      inheritance::after_fork_in_parent();
    },
    [] {
      close_all_in_child();
      fork_mutex.unlock();
      inheritance::after_fork_in_child();
    });

std::uint64_t& word_of(int number) noexcept {
  return tracked[static_cast<std::size_t>(number) / 64];
}

std::uint64_t bit_of(int number) noexcept {
  return std::uint64_t{1} << (static_cast<unsigned>(number) % 64U);
}

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

}  // namespace holdfast::sqlite
