// Names whose release has been asked for while another thread was still busy with the claim, so that the
// store does not know of it yet. Whoever seeks such a name next goes to the store after that release:
// a thread that unlocks and then tries finds the lock free.
#pragma once

#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/runtime.hpp>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::core {

// Thread-safe; costs one load while there is none.
class departures {
 public:
  void announce(const spi::resource_id& resource) {
    const std::lock_guard lock(mutex_);
    ++unsent_[resource].count;
    any_.store(true, std::memory_order_release);
  }

  // One that was announced has been given to the store. Runs what waited for the last of them.
  void sent(const spi::resource_id& resource) {
    std::vector<spi::task> next;
    {
      const std::lock_guard lock(mutex_);
      const auto found = unsent_.find(resource);
      if (found == unsent_.end() || --found->second.count > 0) return;
      next = std::move(found->second.after);
      unsent_.erase(found);
      any_.store(!unsent_.empty(), std::memory_order_release);
    }
    for (spi::task& each : next) each();
  }

  // `work`, now or behind the releases that were announced.
  template <class Work>
  void follow(const spi::resource_id& resource, Work&& work) {
    if (any_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(mutex_);
      if (const auto found = unsent_.find(resource); found != unsent_.end()) {
        found->second.after.emplace_back(std::forward<Work>(work));
        return;
      }
    }
    work();
  }

 private:
  struct unsent {
    std::size_t count = 0;
    std::vector<spi::task> after;
  };

  std::mutex mutex_;
  std::map<spi::resource_id, unsent> unsent_;  // guarded by mutex_
  std::atomic<bool> any_{false};               // unsent_ has some
};

}  // namespace holdfast::core
