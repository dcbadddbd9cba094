// Am I in a forked child? A child has the parent's memory but none of its threads, and shares its
// sockets and its epoll instance: what it touches there, it breaks for the parent.
#pragma once

#include <cstdint>

namespace holdfast::runtime {

// Grows by one in every child, whether fork(), _Fork() or clone() made it. One load: cheap enough for
// every call. Only one that shares the memory (vfork) is not told apart: it may do nothing but exec.
std::uint64_t fork_generation() noexcept;

// Remembers the process in which it was made. Thread-safe; takes no lock, since in the child any
// lock may be held forever by a thread that is not there.
class fork_guard {
 public:
  fork_guard() noexcept : born_(fork_generation()) {}
  [[nodiscard]] bool forked() const noexcept { return fork_generation() != born_; }

 private:
  std::uint64_t born_;
};

}  // namespace holdfast::runtime
