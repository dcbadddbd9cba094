// Which threads of this client hold a name, and how often.
#pragma once

#include "core/hold.hpp"

#include <holdfast/result.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::core {

// A number for the calling thread that is never used again. std::thread::id is: glibc gives a dead
// thread's id to the next one at once, which would then re-enter the dead one's lock.
inline std::uint64_t thread_token() noexcept {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

// Which threads hold a name through the std face, whatever object they used: a second lock by such
// a thread would wait for itself. Thread-safe.
class owners {
 public:
  void add(std::uint64_t thread) {
    const std::lock_guard lock(mutex_);
    threads_.push_back(thread);
  }

  // False: this thread is not among them.
  bool remove(std::uint64_t thread) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(threads_.begin(), threads_.end(), thread);
    if (found == threads_.end()) return false;
    *found = threads_.back();
    threads_.pop_back();
    return true;
  }

  [[nodiscard]] bool has(std::uint64_t thread) const {
    const std::lock_guard lock(mutex_);
    return std::find(threads_.begin(), threads_.end(), thread) != threads_.end();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> threads_;  // guarded by mutex_; a handful
};

// Re-entrance is a local count: the same thread enters again without a round trip, through any
// object of the same client and name, and the fence stays that of the first entry. Thread-safe.
class reentry {
 public:
  static constexpr std::uint32_t deepest = 65'535;

  enum class entry : std::uint8_t { entered, not_inside, lost, too_deep };

  // Counts if this thread is inside. lost: it is, but the lease has ended.
  entry enter(std::uint64_t thread);

  // The first entry, with what was granted. `whose`: keeps this object until the last exit, also when
  // the last lock object of the name ends before that.
  void begin(std::uint64_t thread, std::shared_ptr<hold> granted,
             std::shared_ptr<void> whose = nullptr) {
    const std::lock_guard lock(mutex_);
    stay* mine = find(thread);
    if (mine == nullptr) mine = &stays_.emplace_back();
    *mine = {thread, 1, std::move(granted), std::move(whose)};
  }

  struct departure {
    bool was_inside = false;
    std::shared_ptr<void> whose{};  // with the last exit
    std::shared_ptr<hold> last{};   // the hold, if this was its last exit
  };

  // One exit. Nothing changes for a thread that is not inside.
  departure exit(std::uint64_t thread) noexcept {
    const std::lock_guard lock(mutex_);
    stay* mine = find(thread);
    if (mine == nullptr) return {};
    if (--mine->depth > 0) return {.was_inside = true};
    departure done{true, std::move(mine->whose), std::move(mine->granted)};
    *mine = std::move(stays_.back());
    stays_.pop_back();
    return done;
  }

  // The client closes: entries that nobody leaves any more keep nothing of it.
  void forget_objects() {
    std::vector<std::shared_ptr<void>> forgotten;  // destroyed under no lock
    const std::lock_guard lock(mutex_);
    for (stay& each : stays_) forgotten.push_back(std::move(each.whose));
  }

  [[nodiscard]] bool inside(std::uint64_t thread) const {
    const std::lock_guard lock(mutex_);
    return find(thread) != nullptr;
  }

  // What this thread is inside of; null: nothing.
  [[nodiscard]] std::shared_ptr<hold> of(std::uint64_t thread) const {
    const std::lock_guard lock(mutex_);
    const stay* mine = find(thread);
    return mine == nullptr ? nullptr : mine->granted;
  }

 private:
  struct stay {
    std::uint64_t thread = 0;
    std::uint32_t depth = 0;
    std::shared_ptr<hold> granted;
    std::shared_ptr<void> whose;
  };

  [[nodiscard]] const stay* find(std::uint64_t thread) const noexcept {
    const auto found = std::find_if(stays_.begin(), stays_.end(),
                                    [&](const stay& each) { return each.thread == thread; });
    return found == stays_.end() ? nullptr : &*found;
  }
  stay* find(std::uint64_t thread) noexcept {
    return const_cast<stay*>(std::as_const(*this).find(thread));
  }

  mutable std::mutex mutex_;
  // Guarded by mutex_. One entry, except for threads whose lease was lost and that have not left
  // yet.
  std::vector<stay> stays_;
};

}  // namespace holdfast::core
