// From asynchronous to blocking: starts a verb and waits for its answer, driving the runtime.
#pragma once

#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast {

// The meeting point of a waiting thread and the completion that ends its wait.
template <class T>
class rendezvous {
 public:
  explicit rendezvous(std::shared_ptr<spi::runtime> runtime) : runtime_(std::move(runtime)) {}

  void arrive(result<T> answer) {
    answer_ = std::move(answer);
    done_.store(true);
    // Sequentially consistent with wait(): at least one of the two sees the other's flag, and an
    // answer that comes before the wait costs no wake-up.
    if (parked_.load()) runtime_->wake(done_);
  }

  result<T> wait() {
    parked_.store(true);
    if (!done_.load()) runtime_->wait(done_);
    if (!answer_) return failure(errc::unavailable, "no answer");  // forked: nobody will bring one
    return *std::move(answer_);
  }

 private:
  const std::shared_ptr<spi::runtime> runtime_;
  std::atomic<bool> done_{false};
  std::atomic<bool> parked_{false};
  std::optional<result<T>> answer_;  // set before done_
};

// would_deadlock on the runtime's own threads, which would have to bring the answer.
inline result<void> check_may_block(const spi::runtime& runtime) {
  if (!runtime.on_own_thread()) return {};
  return failure(errc::would_deadlock, "a blocking call on the client's own thread");
}

// `start` is given the completion. Errors as of check_may_block().
template <class T, class Start>
result<T> wait_for(const std::shared_ptr<spi::runtime>& runtime, Start&& start) {
  if (auto fine = check_may_block(*runtime); !fine) return tl::unexpected(std::move(fine.error()));
  auto meeting = std::make_shared<rendezvous<T>>(runtime);
  start(spi::completion<T>([meeting](result<T> answer) { meeting->arrive(std::move(answer)); }));
  return meeting->wait();
}

}  // namespace holdfast
