// The leases of a lock's std face, each with the thread that locked. There may be several: after a
// loss the next thread is let in, while the former one is still inside.
#pragma once

#include <holdfast/lease.hpp>

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::detail {

// Thread-safe, but for empty() and clear().
class thread_leases {
 public:
  struct entry {
    std::uint64_t thread = 0;
    lease held;
  };

  void add(std::uint64_t thread, lease held) {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) spare_.emplace_back();
    spare_.front() = {thread, std::move(held)};
    entries_.splice(entries_.end(), spare_);
  }

  // That of this thread, where it stays until it is taken; without one, an empty lease.
  [[nodiscard]] const lease& of(std::uint64_t thread) const noexcept {
    static const lease none;
    const std::lock_guard lock(mutex_);
    for (const entry& one : entries_) {
      if (one.thread == thread) return one.held;
    }
    return none;
  }

  // That of this thread, or else the oldest of another one.
  std::optional<entry> take(std::uint64_t thread) noexcept {
    const std::lock_guard lock(mutex_);
    if (entries_.empty()) return std::nullopt;
    auto found = entries_.begin();
    while (found != entries_.end() && found->thread != thread) ++found;
    if (found == entries_.end()) found = entries_.begin();
    entry taken = std::move(*found);
    spare_.splice(spare_.end(), entries_, found);
    if (spare_.size() > 1) spare_.pop_back();
    return taken;
  }

  // Only while no other thread uses the lock.
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  void clear() noexcept { entries_.clear(); }

 private:
  mutable std::mutex mutex_;
  std::list<entry> entries_;  // guarded by mutex_; the oldest first
  std::list<entry> spare_;    // guarded by mutex_; one at most, for the next
};

}  // namespace holdfast::detail
