// Timers ordered by time: a binary heap in which each timer knows its place, so that one in the
// middle can be cancelled.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/runtime.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::runtime {

// Not thread-safe. add(), cancel() and pop() are O(log n). Timers of the same time come out in the
// order in which they were added. Ids are never zero, and are not reused until the same slot has
// been used 2^32 times.
class timer_heap {
 public:
  using timer_id = spi::runtime::timer_id;

  timer_id add(time_point when, spi::task work);
  // Returns the task, which the caller must destroy while it holds no lock; empty if there is no
  // such timer.
  spi::task cancel(timer_id id) noexcept;
  // The task of the earliest timer. The heap must not be empty.
  spi::task pop() noexcept;

  [[nodiscard]] bool empty() const noexcept { return order_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }
  // time_point::max() if there is none.
  [[nodiscard]] time_point earliest() const noexcept {
    return order_.empty() ? time_point::max() : order_.front().when;
  }

 private:
  using index = std::uint32_t;

  struct entry {
    time_point when;
    std::uint64_t sequence;
    index slot;

    friend bool operator<(const entry& left, const entry& right) noexcept {
      return left.when != right.when ? left.when < right.when : left.sequence < right.sequence;
    }
  };
  struct slot {
    spi::task work;
    std::size_t place = 0;   // in use: in order_; else the next free slot, or none
    std::uint32_t uses = 0;  // the upper half of the id
    bool used = false;
  };

  static constexpr index none = UINT32_MAX;

  spi::task remove(std::size_t place) noexcept;
  void put(std::size_t place, const entry& item) noexcept;
  void rise(std::size_t place) noexcept;
  void sink(std::size_t place) noexcept;

  std::vector<entry> order_;
  std::vector<slot> slots_;
  index free_ = none;  // the first free slot
  std::uint64_t added_ = 0;
};

}  // namespace holdfast::runtime
