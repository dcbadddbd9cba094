// What the asynchronous calls return, for a coroutine of any type or for a callback.
//
//   auto lease = co_await stock.async_acquire({.wait = 1s});
//   lease->async_release().then([](holdfast::result<void> answer) { ... });
//
// The coroutine resumes, and the callback runs, on the first of these that is set:
//  1. what resume_on() was given: co_await stock.async_acquire().resume_on(pool);
//  2. for a coroutine: what its promise's member executor() returns, if that is a holdfast::executor;
//  3. client_options::executor;
//  4. the client's notifier thread. It also delivers lost() and the observer's events, so nothing on it
//     may block: every blocking call of the client returns would_deadlock there. Use the asynchronous
//     form (async_release, async_set, async_leader, ...), or give the client an executor.
// With Asio it is the handler's executor: <holdfast/asio.hpp>.
#pragma once

#include <holdfast/move_only_function.hpp>
#include <holdfast/result.hpp>

#include <concepts>
#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast {

// Runs callbacks and resumes coroutines. Must run each task exactly once, and not within the call.
using executor = std::function<void(move_only_function<void()>)>;

namespace detail {

// One asynchronous call in progress. Thread-safe.
template <class T>
class operation {
 public:
  virtual ~operation() = default;
  // Called once. `where`: used instead of the client's executor unless it is empty.
  virtual void start(move_only_function<void(result<T>)> done, executor where) = 0;
  // If there is no answer yet and the call may take long, answers cancelled; else does nothing.
  virtual void cancel() noexcept = 0;
  // Cancels; the answer is no longer wanted.
  virtual void abandon() noexcept = 0;
};

}  // namespace detail

// Await it once, or give it a callback by then(); the call starts only then. Destroying the coroutine
// while it waits cancels the call; a grant that nobody takes is released.
template <class T>
class [[nodiscard]] awaitable {
 public:
  explicit awaitable(std::shared_ptr<detail::operation<T>> made) noexcept
      : operation_(std::move(made)) {}
  awaitable(awaitable&& other) noexcept = default;
  awaitable& operator=(awaitable&&) = delete;
  awaitable(const awaitable&) = delete;
  awaitable& operator=(const awaitable&) = delete;
  ~awaitable() {
    if (operation_) operation_->abandon();
  }

  awaitable resume_on(executor where) && {
    where_ = std::move(where);
    return std::move(*this);
  }
  void then(move_only_function<void(result<T>)> done) && {
    std::exchange(operation_, nullptr)->start(std::move(done), std::move(where_));
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> waiting) {
    if constexpr (requires {
                    { waiting.promise().executor() } -> std::convertible_to<executor>;
                  }) {
      if (!where_) where_ = waiting.promise().executor();
    }
    // The answer may resume and destroy the coroutine, and with it this object, before start()
    // returns: nothing of it is touched after that.
    const auto started = operation_;
    started->start(
        [this, waiting](result<T> answer) {
          answer_ = std::move(answer);
          waiting.resume();
        },
        std::move(where_));
  }
  result<T> await_resume() { return std::move(*answer_); }

  // For <holdfast/asio.hpp>.
  [[nodiscard]] std::shared_ptr<detail::operation<T>> take_inside() && noexcept {
    return std::exchange(operation_, nullptr);
  }

 private:
  std::shared_ptr<detail::operation<T>> operation_;
  executor where_;
  std::optional<result<T>> answer_;
};

}  // namespace holdfast
