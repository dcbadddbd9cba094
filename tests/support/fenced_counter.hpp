// What a lock protects, shared by processes: it refuses a holder that is older than the newest one
// so far, as docs/guarantees.md says.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace holdfast::test {

// Thread-safe; lies in a shared_page.
class fenced_counter {
 public:
  // Enters, lets others run, then counts. False: somebody newer entered, before or meanwhile, and
  // nothing was counted; a caller whose lease is still valid then has met another holder.
  bool add_one(std::uint64_t fence) {
    if (!enter(fence)) return false;
    std::this_thread::yield();
    return alone([&] {
      if (fence != newest_) return false;
      ++count_;
      return true;
    });
  }
  [[nodiscard]] int count() const { return count_.load(); }

 private:
  bool enter(std::uint64_t fence) {
    return alone([&] {
      if (fence <= newest_) return false;
      newest_ = fence;
      return true;
    });
  }
  template <class Work>
  bool alone(Work&& work) {
    while (busy_.exchange(true)) std::this_thread::yield();
    const bool answer = work();
    busy_ = false;
    return answer;
  }

  std::atomic<bool> busy_{false};
  std::atomic<std::uint64_t> newest_{0};
  std::atomic<int> count_{0};
};

}  // namespace holdfast::test
