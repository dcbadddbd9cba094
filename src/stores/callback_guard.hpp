// Calls that their receiver can stop: once end() has returned, none is running and none will begin,
// unless end() was called from within one.
#pragma once

#include <holdfast/spi/store.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast::stores {

// Thread-safe. One call at a time.
class callback_guard {
 public:
  template <class Call>
  void run(Call&& call) {
    {
      std::unique_lock lock(mutex_);
      free_.wait(lock, [this] { return caller_ == std::thread::id{}; });
      if (ended_) return;
      caller_ = std::this_thread::get_id();
    }
    call();
    {
      const std::scoped_lock lock(mutex_);
      caller_ = {};
    }
    free_.notify_all();
  }
  void end() {
    std::unique_lock lock(mutex_);
    ended_ = true;
    if (caller_ == std::this_thread::get_id()) return;
    free_.wait(lock, [this] { return caller_ == std::thread::id{}; });
  }
  [[nodiscard]] bool ended() const {
    const std::scoped_lock lock(mutex_);
    return ended_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable free_;
  bool ended_ = false;        // guarded by mutex_
  std::thread::id caller_{};  // guarded by mutex_
};

// Held by the user while it observes: destroying it ends the observation.
template <class Observation>
class observing final : public spi::subscription {
 public:
  explicit observing(std::shared_ptr<Observation> what) : what_(std::move(what)) {}
  observing(const observing&) = delete;
  observing& operator=(const observing&) = delete;
  ~observing() override { what_->end(); }

 private:
  const std::shared_ptr<Observation> what_;
};

}  // namespace holdfast::stores
