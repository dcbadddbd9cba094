// Guards calls into user code: after end() no call begins, and none is running except one that
// called end() itself.
//
// Thread-safe.
#pragma once

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast {

class call_guard {
 public:
  // Calls, unless ended.
  template <class Call>
  void run(Call&& call) {
    if (!enter()) return;
    const leaving at_end{this};
    std::forward<Call>(call)();
  }

  void end() {
    std::unique_lock lock(mutex_);
    ended_ = true;
    const auto mine = std::this_thread::get_id();
    left_.wait(lock, [&] {
      return std::all_of(running_.begin(), running_.end(),
                         [&](std::thread::id each) { return each == mine; });
    });
  }

 private:
  struct leaving {
    call_guard* guard;
    ~leaving() { guard->leave(); }
  };

  bool enter() {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    running_.push_back(std::this_thread::get_id());
    return true;
  }

  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    running_.erase(std::find(running_.begin(), running_.end(), std::this_thread::get_id()));
    left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable left_;
  bool ended_ = false;                    // guarded by mutex_
  std::vector<std::thread::id> running_;  // guarded by mutex_
};

// A store's subscription whose calls go through a guard: none is made after it was destroyed, even
// if it was handed to an executor before.
class guarded_subscription final : public spi::subscription {
 public:
  guarded_subscription(std::unique_ptr<spi::subscription> inner, std::shared_ptr<call_guard> calls,
                       std::shared_ptr<spi::runtime> runtime)
      : inner_(std::move(inner)), calls_(std::move(calls)), runtime_(std::move(runtime)) {}
  guarded_subscription(const guarded_subscription&) = delete;
  guarded_subscription& operator=(const guarded_subscription&) = delete;
  ~guarded_subscription() override {
    if (!runtime_->forked()) calls_->end();
  }

 private:
  const std::unique_ptr<spi::subscription> inner_;
  const std::shared_ptr<call_guard> calls_;
  const std::shared_ptr<spi::runtime> runtime_;
};

}  // namespace holdfast
