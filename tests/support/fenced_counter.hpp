// What a lock protects, shared by processes: it refuses whoever is older than the newest that has come in, as
// docs/guarantees.md says.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace holdfast::test {

// Thread-safe; lies in a shared_page.
class fenced_counter {
 public:
  // Reads, lets others run, then writes: wrong as soon as two do it at once. False: somebody newer has come
  // in, before or meanwhile, and nothing was counted.
  bool add_one(std::uint64_t fence) {
    if (!enter(fence)) return false;
    const int before = value_.load();
    std::this_thread::yield();
    return write(fence, before + 1);
  }
  [[nodiscard]] int value() const { return value_.load(); }
  [[nodiscard]] int written() const { return written_.load(); }

 private:
  bool enter(std::uint64_t fence) {
    return alone([&] {
      if (fence <= newest_) return false;
      newest_ = fence;
      return true;
    });
  }
  bool write(std::uint64_t fence, int value) {
    return alone([&] {
      if (fence != newest_) return false;
      value_ = value;
      ++written_;
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
  std::atomic<int> value_{0};
  std::atomic<int> written_{0};
};

}  // namespace holdfast::test
