// Those who wait in the event loop: who waits for which flag, in the order of their coming, and how
// each is put to sleep and woken alone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace holdfast::runtime {

// One waiting thread. It sleeps on a futex word of its own. Belongs to the line's pool and is used
// again: whoever wakes it late, after it has left, wakes another for nothing, which is harmless.
class waiter {
 public:
  // Sleeps until wake(), also if that came before. May return for nothing.
  void sleep() noexcept;
  void wake() noexcept;

  // True as long as the thread has to go on waiting. The flag lives while the waiter is in line.
  [[nodiscard]] bool unserved() const noexcept { return !flag_->load(std::memory_order_acquire); }

 private:
  friend class wait_line;

  const std::atomic<bool>* flag_ = nullptr;
  waiter* before_ = nullptr;  // in the line
  waiter* after_ = nullptr;   // in the line, or among the free
  waiter* peer_ = nullptr;    // the next in the same bucket
  std::atomic<std::uint32_t> token_{0};
};

// Not thread-safe, but for waiter::sleep() and wake(). As many waiters are kept as ever waited at
// once: one per blocked thread of the process.
class wait_line {
 public:
  waiter& enter(const std::atomic<bool>& flag);
  void leave(waiter& who) noexcept;

  // The first whose flag is not set, or null.
  [[nodiscard]] waiter* first_unserved() const noexcept;
  // The first that waits for this flag, or null; then the next. Only the flag's address is used.
  [[nodiscard]] waiter* find(const void* flag) const noexcept;
  [[nodiscard]] static waiter* find_next(const waiter& who) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void wake_all() noexcept;

 private:
  static constexpr std::size_t buckets = 256;

  static std::size_t bucket_of(const void* flag) noexcept;

  std::deque<waiter> pool_;
  waiter* free_ = nullptr;
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
  std::size_t size_ = 0;
  std::array<waiter*, buckets> bucket_{};
};

}  // namespace holdfast::runtime
