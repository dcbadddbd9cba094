// Asking a channel from within a flow: one batch of calls in one go, all answers at once.
#pragma once

#include "stores/etcd/channel.hpp"
#include "stores/flow.hpp"

#include <holdfast/result.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::etcd {

using stores::flow;
using stores::task;

using replies = std::vector<result<reply>>;

// To be awaited at once. The answers come in the order of the calls.
class asking final : public asker {
 public:
  asking(std::shared_ptr<channel> whom, std::vector<call> batch, const net::patience& until)
      : whom_(std::move(whom)),
        batch_(std::move(batch)),
        until_(until),
        answers_(batch_.size(), result<reply>(failure(errc::unavailable))),
        left_(batch_.size() + 1) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> then) {
    then_ = then;
    whom_->ask(std::move(batch_), until_, *this);
    return left_.fetch_sub(1) != 1;  // else all is answered already: go on here
  }
  replies await_resume() { return std::move(answers_); }

  void answered(std::size_t index, result<reply> answer) override {
    answers_[index] = std::move(answer);
    if (left_.fetch_sub(1) == 1) then_.resume();
  }

 private:
  const std::shared_ptr<channel> whom_;
  std::vector<call> batch_;
  const net::patience until_;
  replies answers_;
  std::atomic<std::size_t> left_;
  std::coroutine_handle<> then_;
};

// What a status that was not expected means to the user.
error refusal(const char* doing, std::string_view key, const grpc_status& what);
bool lease_is_gone(const grpc_status& what);

// One call; a status other than ok is an error. What it is given outlives it: to be awaited at once. References,
// because GCC 12 destroys a temporary twice that is an argument of what is awaited.
task<result<reply>> ask_one(std::shared_ptr<channel> whom, call& what, const char* doing,
                            std::string_view key, net::patience until);

}  // namespace holdfast::etcd
