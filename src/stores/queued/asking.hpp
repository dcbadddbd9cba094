// Asking a connection from within a flow: one batch of requests, sent
// together; all answers at once.
#pragma once

#include "net/patience.hpp"

#include <holdfast/result.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::stores {

// The sender of requests. Called exactly once for each request of a batch, by its
// deadline, under no lock.
template <class Reply>
class asker {
 public:
  virtual ~asker() = default;
  virtual void answered(std::size_t index, result<Reply> answer) = 0;
};

// To be reported when the connection's mutex is free.
template <class Reply>
struct answered_one {
  asker<Reply>* who;
  std::size_t index;
  result<Reply> answer;

  void tell() { who->answered(index, std::move(answer)); }
};

// Removes from the requests that wait for a connection those that are `over`: they were never sent.
template <class Pending, class Reply, class Over>
void take_waiting(std::deque<Pending>& waiting, const error& why,
                  std::vector<answered_one<Reply>>& into, Over over) {
  const error unsent = net::unsent(why);
  std::erase_if(waiting, [&](const Pending& one) {
    if (!over(one)) return false;
    into.push_back({one.who, one.index, tl::unexpected(unsent)});
    return true;
  });
}

// To be awaited at once. The answers come in the order of the requests.
template <class Connection, class Request, class Reply>
class asking final : public asker<Reply> {
 public:
  // `only_in`: where the connection has sessions, the one that must not be over.
  asking(std::shared_ptr<Connection> whom, std::vector<Request> batch, const net::patience& until,
         std::int64_t only_in = 0)
      : whom_(std::move(whom)),
        batch_(std::move(batch)),
        until_(until),
        only_in_(only_in),
        answers_(batch_.size(), result<Reply>(failure(errc::unavailable))),
        left_(batch_.size() + 1) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> then) {
    then_ = then;
    if constexpr (requires { whom_->ask(std::move(batch_), until_, *this, only_in_); }) {
      whom_->ask(std::move(batch_), until_, *this, only_in_);
    } else {
      whom_->ask(std::move(batch_), until_, *this);
    }
    return left_.fetch_sub(1) != 1;  // else all answers are there: continue here
  }
  std::vector<result<Reply>> await_resume() { return std::move(answers_); }

  void answered(std::size_t index, result<Reply> answer) override {
    answers_[index] = std::move(answer);
    if (left_.fetch_sub(1) == 1) then_.resume();
  }

 private:
  const std::shared_ptr<Connection> whom_;
  std::vector<Request> batch_;
  const net::patience until_;
  const std::int64_t only_in_;
  std::vector<result<Reply>> answers_;
  std::atomic<std::size_t> left_;
  std::coroutine_handle<> then_;
};

}  // namespace holdfast::stores
