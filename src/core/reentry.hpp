// Re-entrance is a local count: the same thread enters again without a round trip, through any
// object of the same client and name, and the fence stays that of the first entry.
//
// Thread-safe.
#pragma once

#include "core/hold.hpp"
#include "core/mutant.hpp"

#include <holdfast/result.hpp>

#include <cstdint>
#include <memory>
#include <mutex>

namespace holdfast::core {

class reentry {
 public:
  static constexpr std::uint32_t deepest = 65'535;

  enum class entry : std::uint8_t { entered, not_inside, lost, too_deep };

  // Counts if this thread is inside. lost: it is, but the lease has ended.
  entry enter(std::uint64_t thread) {
    const std::lock_guard lock(mutex_);
    if (!hold_ || thread_ != thread) return entry::not_inside;
    if (!hold_->valid()) return entry::lost;
    if (depth_ == deepest) return entry::too_deep;
    ++depth_;
    if (mutated(mutant::fence_changes_on_reentry)) {
      hold_->renumber(fence_token(hold_->fence().value() + 1));
    }
    return entry::entered;
  }

  // The first entry, with what was granted.
  void begin(std::uint64_t thread, std::shared_ptr<hold> granted) {
    const std::lock_guard lock(mutex_);
    thread_ = thread;
    depth_ = 1;
    hold_ = std::move(granted);
  }

  // One exit. The hold if it was the last; null otherwise, also for a thread that is not inside.
  std::shared_ptr<hold> exit(std::uint64_t thread) noexcept {
    const std::lock_guard lock(mutex_);
    if (!hold_ || thread_ != thread || --depth_ > 0) return nullptr;
    thread_ = 0;
    return std::move(hold_);
  }

  [[nodiscard]] bool inside(std::uint64_t thread) const {
    const std::lock_guard lock(mutex_);
    return hold_ && thread_ == thread;
  }

  [[nodiscard]] std::shared_ptr<hold> current() const {
    const std::lock_guard lock(mutex_);
    return hold_;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t thread_ = 0;    // guarded by mutex_
  std::uint32_t depth_ = 0;     // guarded by mutex_
  std::shared_ptr<hold> hold_;  // guarded by mutex_
};

}  // namespace holdfast::core
