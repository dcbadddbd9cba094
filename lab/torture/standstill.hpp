// How long this machine stood still at most: no process of it ran, and a client that had begun to ask, or was about
// to give back, came later than it thought. That is not held against the engine.
#pragma once

#include <holdfast/clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

namespace holdfast::torture {

// Thread-safe. Measures while it lives.
class standstill {
 public:
  [[nodiscard]] duration longest() const noexcept { return duration(longest_.load()); }

 private:
  static constexpr std::chrono::milliseconds step{20};

  void measure(const std::stop_token& stop) {
    time_point before = clock::now();
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(step);
      const time_point now = clock::now();
      longest_ = std::max(longest_.load(), (now - before - step).count());
      before = now;
    }
  }

  std::atomic<duration::rep> longest_{0};
  std::jthread thread_{[this](const std::stop_token& stop) { measure(stop); }};
};

}  // namespace holdfast::torture
