#include "primitives/pursuit.hpp"

#include "core/hold.hpp"

#include <utility>

namespace holdfast {

namespace detail {

pursuit::pursuit(std::shared_ptr<client::state> client, core::request request,
                 std::stop_token token)
    : client_(std::move(client)), request_(std::move(request)), token_(std::move(token)) {}

void pursuit::cancel_on_stop::operator()() const noexcept {
  if (const auto alive = acquisition.lock()) alive->cancel();
}

void pursuit::start(acquire_callback done) {
  const auto self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    done_ = std::move(done);
  }
  if (token_.stop_requested()) {
    return arrived(failure(errc::cancelled, "stopped before it began"));
  }
  const auto acquisition = client_->engine->acquire(
      std::move(request_),
      [self](result<std::shared_ptr<core::hold>> answer) { self->arrived(std::move(answer)); });
  {
    const std::lock_guard lock(mutex_);
    if (answered_ || !acquisition) return;
    acquisition_ = acquisition;
  }
  // Outside the lock: a token that is stopped already calls back at once. An answer that comes at
  // this moment leaves a callback behind that cancels nothing.
  if (token_.stop_possible()) on_stop_.emplace(token_, cancel_on_stop{acquisition});
}

void pursuit::abandon() noexcept {
  std::shared_ptr<core::acquisition> acquisition;
  acquire_callback dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped = std::move(done_);
    acquisition = std::move(acquisition_);
  }
  if (acquisition) acquisition->cancel();
}

void pursuit::arrived(result<std::shared_ptr<core::hold>> answer) {
  {
    const std::lock_guard lock(mutex_);
    answered_ = true;
    acquisition_.reset();
  }
  result<lease> outcome = failure(errc::unavailable);
  if (answer) {
    outcome = lease(std::move(*answer));
  } else {
    outcome = tl::unexpected(std::move(answer.error()));
  }
  client_->deliver([self = shared_from_this(), outcome = std::move(outcome)]() mutable {
    acquire_callback done;
    {
      const std::lock_guard lock(self->mutex_);
      done = std::move(self->done_);
    }
    if (done) done(std::move(outcome));  // else abandoned: the lease gives itself back
  });
}

}  // namespace detail

acquire_awaitable::acquire_awaitable(std::shared_ptr<detail::pursuit> pursuit) noexcept
    : pursuit_(std::move(pursuit)) {}

acquire_awaitable::~acquire_awaitable() {
  if (pursuit_) pursuit_->abandon();
}

void acquire_awaitable::await_suspend(std::coroutine_handle<> waiting) {
  // The answer may resume and destroy the coroutine, and with it this object, before start()
  // returns: nothing of it is touched after that.
  const auto pursuit = pursuit_;
  pursuit->start([this, waiting](result<lease> answer) {
    answer_ = std::move(answer);
    waiting.resume();
  });
}

result<lease> acquire_awaitable::await_resume() { return std::move(*answer_); }

}  // namespace holdfast
