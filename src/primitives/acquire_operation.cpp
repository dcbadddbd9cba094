#include "primitives/acquire_operation.hpp"

#include "core/hold.hpp"

#include <utility>

namespace holdfast::detail {

acquire_operation::acquire_operation(const std::shared_ptr<client::state>& client,
                                     core::request request, std::stop_token token)
    : client_operation<lease>(client->engine),
      engine_(client->engine),
      request_(std::move(request)),
      token_(std::move(token)) {}

void acquire_operation::cancel_on_stop::operator()() const noexcept {
  if (const auto alive = acquisition.lock()) alive->cancel();
}

void acquire_operation::begin() {
  const auto self = std::static_pointer_cast<acquire_operation>(shared_from_this());
  if (token_.stop_requested()) {
    return answered(failure(errc::cancelled, "stopped before it began"));
  }
  const auto acquisition = engine_->acquire(
      std::move(request_),
      [self](result<std::shared_ptr<core::hold>> answer) { self->answered(std::move(answer)); });
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    if (answered_ || !acquisition) return;
    acquisition_ = acquisition;
    cancelled = cancelled_;
  }
  if (cancelled) return acquisition->cancel();
  // Outside the lock: a token that is stopped already calls back at once. An answer that comes at
  // this moment leaves a callback behind that cancels nothing.
  if (token_.stop_possible()) on_stop_.emplace(token_, cancel_on_stop{acquisition});
}

void acquire_operation::cancel() noexcept {
  std::shared_ptr<core::acquisition> acquisition;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    acquisition = std::move(acquisition_);
  }
  if (acquisition) acquisition->cancel();
}

void acquire_operation::answered(result<std::shared_ptr<core::hold>> answer) {
  {
    const std::lock_guard lock(mutex_);
    answered_ = true;
    acquisition_.reset();
  }
  if (answer) return arrived(lease(std::move(*answer)));
  arrived(tl::unexpected(std::move(answer.error())));
}

}  // namespace holdfast::detail
