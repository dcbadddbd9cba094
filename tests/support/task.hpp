// A coroutine for tests: starts at once, can be waited for, and can be destroyed while it waits.
#pragma once

#include "support/eventually.hpp"

#include <coroutine>
#include <exception>
#include <memory>
#include <utility>

namespace holdfast::test {

class task {
 public:
  struct promise_type {
    std::shared_ptr<flag> done = std::make_shared<flag>();

    struct finish {
      [[nodiscard]] bool await_ready() const noexcept { return false; }
      // Here it is suspended, and may be destroyed by the waiter: the flag must outlive the frame.
      void await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
        const auto done = ended.promise().done;
        done->raise();
      }
      void await_resume() const noexcept {}
    };

    task get_return_object() {
      return task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
    [[nodiscard]] finish final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
  };

  task(task&& other) noexcept
      : frame_(std::exchange(other.frame_, nullptr)), done_(std::move(other.done_)) {}
  task& operator=(task&& other) noexcept {
    std::swap(frame_, other.frame_);
    std::swap(done_, other.done_);
    return *this;
  }
  task(const task&) = delete;
  task& operator=(const task&) = delete;
  ~task() { destroy(); }

  // False: not within the limit.
  [[nodiscard]] bool finishes(duration limit = patience) const { return done_->wait(limit); }
  [[nodiscard]] bool finished() const { return done_->raised(); }

  // Only while it is suspended, and nobody is about to resume it.
  void destroy() noexcept {
    if (frame_) std::exchange(frame_, nullptr).destroy();
  }

 private:
  explicit task(std::coroutine_handle<promise_type> frame)
      : frame_(frame), done_(frame.promise().done) {}

  std::coroutine_handle<promise_type> frame_;
  std::shared_ptr<flag> done_;
};

}  // namespace holdfast::test
