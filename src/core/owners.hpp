// Which threads hold a name through the std face of this client, whatever object they used: a
// second lock by such a thread would wait for itself.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

namespace holdfast::core {

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

}  // namespace holdfast::core
