// A mutex with a deadline. Own, because ThreadSanitizer reports std::timed_mutex falsely.
#pragma once

#include <holdfast/clock.hpp>

#include <condition_variable>
#include <mutex>

namespace holdfast::sqlite {

// Thread-safe.
class turn {
 public:
  bool take(time_point deadline) {
    std::unique_lock lock(mutex_);
    while (taken_) {
      const duration left = deadline - clock::now();
      if (left <= duration{0}) return false;
      ++waiting_;
      given_.wait_for(lock, left);
      --waiting_;
    }
    taken_ = true;
    return true;
  }

  void give() noexcept {
    bool others = false;
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
      others = waiting_ > 0;
    }
    if (others) given_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  bool taken_ = false;  // guarded by mutex_
  int waiting_ = 0;     // guarded by mutex_
};

}  // namespace holdfast::sqlite
