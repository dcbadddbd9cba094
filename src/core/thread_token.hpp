// A number for the calling thread that is never used again. std::thread::id is: glibc gives a dead
// thread's id to the next one at once, which would then re-enter the dead one's lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::core {

inline std::uint64_t thread_token() noexcept {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace holdfast::core
