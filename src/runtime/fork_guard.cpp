// A page that the kernel empties in every child, however it was made: fork handlers do not run for
// _Fork() and clone().
#include "runtime/fork_guard.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace holdfast::runtime {

namespace {

// Globals, since this is a property of the process and not of any object in it. Constant-initialised:
// a fork during a first use would leave the child with a half-made guard.
constinit std::atomic<std::uint64_t> plain_counter{1};
constinit std::atomic<std::uint64_t> last_generation{1};  // never less than the other one was

}  // namespace

constinit std::atomic<std::uint64_t>* fork_counter = &plain_counter;

namespace {

// A kernel before 4.14 does not empty pages; then a handler does, for fork() alone.
bool prepare_counter() noexcept {
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED && ::madvise(page, size, MADV_WIPEONFORK) == 0) {
    fork_counter = new (page) std::atomic<std::uint64_t>(1);
    return true;
  }
  return ::pthread_atfork(nullptr, nullptr,
                          [] { plain_counter.store(0, std::memory_order_relaxed); }) == 0;
}

[[maybe_unused]] const bool prepared = prepare_counter();

}  // namespace

std::uint64_t fork_generation() noexcept {
  std::uint64_t found = fork_counter->load(std::memory_order_relaxed);
  if (found != 0) return found;
  const std::uint64_t next = last_generation.load(std::memory_order_relaxed) + 1;
  last_generation.store(next, std::memory_order_relaxed);
  return fork_counter->compare_exchange_strong(found, next, std::memory_order_relaxed) ? next
                                                                                       : found;
}

}  // namespace holdfast::runtime
