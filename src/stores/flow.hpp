// Coroutines of the stores: a verb that takes several round trips reads from top to bottom. What a
// flow awaits is always answered (by the server, the deadline, or the end of the client), so none
// is ever left hanging.
//
//   const reply answer = co_await value_of(ask_one(...));   // an error ends the task, and is its answer
//   const result<reply> answer = co_await ask_one(...);     // an error is looked at here
//
// No lock is held across a co_await: a flow may go on on another thread.
#pragma once

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace holdfast::stores {

// Begins at once; nobody owns it.
struct flow {
  struct promise_type {
    [[nodiscard]] flow get_return_object() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
  };
};

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<result<T>> = true;

// Begins when it is awaited, once, and resumes its awaiter at the end.
template <class T>
class [[nodiscard]] task {
 public:
  struct promise_type {
    std::coroutine_handle<> then;
    // Set only by an awaiter of the value: ends `then` with the error, and
    // returns who resumes instead.
    std::coroutine_handle<> (*fail)(std::coroutine_handle<> then, error& why) = nullptr;
    std::optional<T> value;

    // Who resumes when there is an answer.
    [[nodiscard]] std::coroutine_handle<> next() {
      if constexpr (is_result<T>) {
        if (fail != nullptr && !value->has_value()) return fail(then, value->error());
      }
      return then;
    }

    struct finish {
      [[nodiscard]] bool await_ready() const noexcept { return false; }
      [[nodiscard]] std::coroutine_handle<> await_suspend(
          std::coroutine_handle<promise_type> ended) const noexcept {
        return ended.promise().next();
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
  template <class>
  friend class awaited_value;

  explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

// The awaiting task stays suspended where it is, for good, and has its answer. Its frame is
// destroyed, like that of any task, once its awaiter has taken that answer.
template <class Promise>
std::coroutine_handle<> end_with(std::coroutine_handle<> who, error& why) {
  auto& promise = std::coroutine_handle<Promise>::from_address(who.address()).promise();
  promise.value.emplace(tl::unexpected(std::move(why)));
  return promise.next();
}

// What value_of() returns, of a task or of a result that is there already.
template <class Source>
class awaited_value;

template <class T>
class awaited_value<task<result<T>>> {
 public:
  explicit awaited_value(task<result<T>>& work) noexcept : work_(work) {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  [[nodiscard]] std::coroutine_handle<> await_suspend(
      std::coroutine_handle<Promise> then) noexcept {
    work_.frame_.promise().fail = end_with<Promise>;
    return work_.await_suspend(then);
  }
  T await_resume() {
    if constexpr (!std::is_void_v<T>) return *work_.await_resume();
  }

 private:
  task<result<T>>& work_;
};

template <class T>
class awaited_value<result<T>> {
 public:
  explicit awaited_value(result<T>& ready) noexcept : ready_(ready) {}
  [[nodiscard]] bool await_ready() const noexcept { return ready_.has_value(); }
  template <class Promise>
  [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> then) {
    return end_with<Promise>(then, ready_.error());
  }
  T await_resume() {
    if constexpr (!std::is_void_v<T>) return *std::move(ready_);
  }

 private:
  result<T>& ready_;
};

// The value of what can fail, taken out of it; to be awaited at once, in a task whose answer is a
// result. Arguments that the call within takes by value must be named or moved: GCC 12 destroys
// temporaries there twice.
template <class T>
auto value_of(task<result<T>>&& work) noexcept {
  return awaited_value<task<result<T>>>(work);
}
template <class T>
auto value_of(result<T>&& ready) noexcept {
  return awaited_value<result<T>>(ready);
}

// Begins the work, and hands on what it answers.
template <class T>
flow answer(task<result<T>> work, spi::completion<T> done) {
  result<T> outcome = co_await work;
  done(std::move(outcome));
}

}  // namespace holdfast::stores
