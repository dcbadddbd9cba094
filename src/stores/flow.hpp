// Coroutines of the store: a verb that takes several round trips reads from top to bottom. What a
// flow awaits is always answered (by the server, the deadline, or the end of the client), so none
// is ever left hanging.
//
// No lock is held across a co_await: a flow may go on on another thread.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace holdfast::stores {

// Begins at once and is owned by nobody.
struct flow {
  struct promise_type {
    [[nodiscard]] flow get_return_object() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
  };
};

// Begins when it is awaited, once, and goes on in who awaited it.
template <class T>
class [[nodiscard]] task {
 public:
  struct promise_type {
    std::coroutine_handle<> then;
    std::optional<T> value;

    struct finish {
      [[nodiscard]] bool await_ready() const noexcept { return false; }
      [[nodiscard]] std::coroutine_handle<> await_suspend(
          std::coroutine_handle<promise_type> ended) const noexcept {
        return ended.promise().then;
      }
      void await_resume() const noexcept {}
    };

    task get_return_object() {
      return task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
    [[nodiscard]] finish final_suspend() const noexcept { return {}; }
    template <class Value>
    void return_value(Value&& result) {
      value.emplace(std::forward<Value>(result));
    }
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
  };

  task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  task(const task&) = delete;
  task& operator=(const task&) = delete;
  task& operator=(task&&) = delete;
  ~task() {
    if (frame_) frame_.destroy();
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<> then) noexcept {
    frame_.promise().then = then;
    return frame_;
  }
  T await_resume() { return std::move(*frame_.promise().value); }

 private:
  explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

}  // namespace holdfast::stores
