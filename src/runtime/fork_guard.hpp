// Am I in a forked child? A child has the parent's memory but none of its threads, and shares its
// sockets and its epoll instance: what it touches there, it breaks for the parent.
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::runtime {

// Never zero; grows by one in every child, whether fork(), _Fork() or clone() made it. Only a child
// that shares the memory (vfork) cannot be told apart: it may do nothing but exec.
std::uint64_t fork_generation() noexcept;
// Where it is counted; zero in a child that has not asked yet.
extern std::atomic<std::uint64_t>* fork_counter;

// Remembers the process in which it was made. Thread-safe; takes no lock, since in the child any
// lock may be held forever by a thread that does not exist there. One load: cheap enough for every
// call.
class fork_guard {
 public:
  fork_guard() noexcept : born_(fork_generation()) {}
  [[nodiscard]] bool forked() const noexcept {
    return fork_counter->load(std::memory_order_relaxed) != born_;
  }

 private:
  std::uint64_t born_;
};

}  // namespace holdfast::runtime
