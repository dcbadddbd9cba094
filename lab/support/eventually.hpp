// Waiting in tests: for the thing itself, with a generous limit.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/move_only_function.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace holdfast::test {

// How long a test waits for what must happen. Reached only where something is broken.
inline constexpr std::chrono::seconds patience{30};

// Checks until the condition holds: for things that notify nobody. Between two checks it pauses for
// twice as long as a check takes: some start a program, and would keep a core busy that the server
// needs to get ready.
template <class Condition>
bool eventually(Condition&& condition, duration limit = patience) {
  const time_point end = clock::now() + limit;
  for (;;) {
    const time_point begun = clock::now();
    if (condition()) return true;
    const time_point now = clock::now();
    if (now >= end) return false;
    constexpr duration shortest = std::chrono::milliseconds(1);
    std::this_thread::sleep_for(std::clamp(2 * (now - begun), shortest, end - now + shortest));
  }
}

// Raised once, by any thread; others wait for it. Thread-safe.
class flag {
 public:
  void raise() {
    const std::lock_guard lock(mutex_);
    raised_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool raised() const {
    const std::lock_guard lock(mutex_);
    return raised_;
  }
  // False: not within the limit.
  [[nodiscard]] bool wait(duration limit = patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [this] { return raised_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool raised_ = false;  // guarded by mutex_
};

// std::async is instantiated to well over a hundred functions for each type of work: here only once
// for each type of result.
template <class Work>
auto in_thread(Work&& work) {
  using answer = std::invoke_result_t<Work>;
  return std::async(std::launch::async, move_only_function<answer()>(std::forward<Work>(work)));
}

template <class T>
bool arrives(const std::future<T>& answer, duration limit = patience) {
  return answer.wait_for(limit) == std::future_status::ready;
}

}  // namespace holdfast::test
