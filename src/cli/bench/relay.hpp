// When each lock was last given back: memory that all processes of a measurement map. Who holds an
// exclusive lock writes it, just before giving it back; who gets it next reads it, and knows how
// long the hand-over took. The clock is one for all processes of a machine.
#pragma once

#include "cli/descriptor.hpp"

#include <holdfast/clock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace holdfast::cli {

// Thread-safe and process-safe.
class relay {
 public:
  explicit relay(std::size_t locks);  // throws std::system_error
  // The one that another process made. Takes the descriptor.
  relay(descriptor file, std::size_t locks);
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;
  ~relay();

  // To be inherited: stays this object's.
  [[nodiscard]] int file() const noexcept { return file_.get(); }

  void given_back(std::size_t lock, time_point when) const noexcept {
    cells_[lock].store(when.time_since_epoch().count(), std::memory_order_release);
  }
  [[nodiscard]] time_point last_given_back(std::size_t lock) const noexcept {
    return time_point(duration(cells_[lock].load(std::memory_order_acquire)));
  }

 private:
  using moment = std::atomic<std::int64_t>;
  static_assert(moment::is_always_lock_free);

  descriptor file_;
  std::size_t bytes_;
  moment* cells_;
};

}  // namespace holdfast::cli
