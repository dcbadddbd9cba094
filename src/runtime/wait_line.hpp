// The waiters of the event loop: which flag each waits for, in order of arrival, and how each is
// put to sleep and woken, alone or together with others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace holdfast::runtime {

// A word that threads sleep on, each with one of 32 bits, so that one system call wakes any of
// them. It counts the calls, so that none is missed between a look and the sleep.
struct sleeping_row {
  std::atomic<std::uint32_t> calls{0};
  // Used by a wake_party.
  std::uint32_t in_party = 0;  // bits
  sleeping_row* next_in_party = nullptr;

  void wake(std::uint32_t bits) noexcept;
};

// A waiter to wake while no lock is held. By then it may have left, and another may be woken
// without need, which is harmless.
struct wake_call {
  sleeping_row* row = nullptr;
  std::uint32_t bit = 0;  // 0: nobody

  void make() const noexcept {
    if (bit != 0) row->wake(bit);
  }
};

// One waiting thread. Belongs to the line's pool and is reused.
class waiter {
 public:
  // Sleeps until it is called; returns at once if it was called before.
  void sleep() noexcept;
  // The call to make once no lock is held. Nobody, if the waiter was called before and has not
  // noticed.
  [[nodiscard]] wake_call call() noexcept;
  void wake() noexcept { call().make(); }

  // True as long as the thread has to go on waiting. The flag lives as long as that.
  [[nodiscard]] bool unserved() const noexcept { return !flag_->load(std::memory_order_acquire); }
  // The thread that set its flag took it out of the line.
  [[nodiscard]] bool dismissed() const noexcept {
    return dismissed_.load(std::memory_order_acquire);
  }

 private:
  friend class wait_line;

  const std::atomic<bool>* flag_ = nullptr;
  waiter* before_ = nullptr;  // in the line
  waiter* after_ = nullptr;   // in the line, or among the free
  waiter* peer_ = nullptr;    // the next in the same bucket
  sleeping_row* row_ = nullptr;
  std::uint32_t bit_ = 0;  // in the row
  std::atomic<bool> called_{false};
  std::atomic<bool> dismissed_{false};
};

// Waiters to be woken together, with one system call per row. Not thread-safe, and a line has one
// party at a time.
class wake_party {
 public:
  void add(wake_call who) noexcept;
  void wake() noexcept;  // then it is empty

 private:
  sleeping_row* first_ = nullptr;
};

// Not thread-safe, except for waiter::sleep() and give_back(). Keeps as many waiters as ever waited
// at once: one per blocked thread of the process.
class wait_line {
 public:
  waiter& enter(const std::atomic<bool>& flag);
  void leave(waiter& who) noexcept;
  // Takes it out of the line, on another thread than its own, which must then be woken, and gives
  // it back.
  void dismiss(waiter& who) noexcept;
  void give_back(waiter& who) noexcept;

  // The first whose flag is not set, or null.
  [[nodiscard]] waiter* first_unserved() const noexcept;
  // The first that waits for this flag, or null; then the next. Only the flag's address is used.
  [[nodiscard]] waiter* find(const void* flag) const noexcept;
  [[nodiscard]] static waiter* find_next(const waiter& who) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void wake_all() noexcept;

 private:
  static constexpr std::size_t buckets = 256;

  // Threads that arrive one after the other are often answered together, and share a row. The more
  // threads sleep in a row, the longer the kernel looks for the right one.
  static constexpr std::size_t rows = 64;
  static constexpr std::size_t neighbours = 8;

  static std::size_t bucket_of(const void* flag) noexcept;
  void lay_down(waiter& who) noexcept;
  void unlink(waiter& who) noexcept;

  std::array<sleeping_row, rows> rows_;
  std::uint32_t came_ = 0;
  std::deque<waiter> pool_;
  waiter* free_ = nullptr;
  std::atomic<waiter*> given_back_{nullptr};
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
  std::size_t size_ = 0;
  std::array<waiter*, buckets> bucket_{};
};

}  // namespace holdfast::runtime
