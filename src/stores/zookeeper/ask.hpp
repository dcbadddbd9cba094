// Asking a session from within a flow: one batch of requests in one go, all answers at once.
#pragma once

#include "stores/flow.hpp"
#include "stores/zookeeper/session.hpp"

#include <holdfast/result.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

using replies = std::vector<result<reply>>;

// To be awaited at once. The answers come in the order of the questions.
class asking final : public asker {
 public:
  asking(std::shared_ptr<session> whom, std::vector<question> batch, net::patience until,
         std::int64_t only_in = 0)
      : whom_(std::move(whom)),
        batch_(std::move(batch)),
        until_(until),
        only_in_(only_in),
        answers_(batch_.size(), result<reply>(failure(errc::unavailable))),
        left_(batch_.size() + 1) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> then) {
    then_ = then;
    whom_->ask(std::move(batch_), only_in_, until_, *this);
    return left_.fetch_sub(1) != 1;  // else all is answered already: go on here
  }
  replies await_resume() { return std::move(answers_); }

  void answered(std::size_t index, result<reply> answer) override {
    answers_[index] = std::move(answer);
    if (left_.fetch_sub(1) == 1) then_.resume();
  }

 private:
  const std::shared_ptr<session> whom_;
  std::vector<question> batch_;
  const net::patience until_;
  const std::int64_t only_in_;
  replies answers_;
  std::atomic<std::size_t> left_;
  std::coroutine_handle<> then_;
};

// One question.
task<result<reply>> ask_one(std::shared_ptr<session> whom, question what, net::patience until,
                            std::int64_t only_in = 0);

// Makes a node and what is above it, as containers: the server removes them some time after they
// became empty. Succeeds where it is there already.
task<result<void>> make_containers(std::shared_ptr<session> whom, std::string path, openness acl,
                                   net::patience until);

// What a code that was not expected means to the user.
error refusal(const char* doing, const std::string& path, code what);

}  // namespace holdfast::zookeeper
