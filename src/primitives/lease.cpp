#include "core/hold.hpp"
#include "primitives/wait_for.hpp"

#include <holdfast/lease.hpp>

#include <algorithm>
#include <utility>

namespace holdfast {

lease::lease(std::shared_ptr<core::hold> hold) noexcept : hold_(std::move(hold)) {}

lease& lease::operator=(lease&& other) noexcept {
  if (this != &other) {
    if (hold_) hold_->release();
    hold_ = std::move(other.hold_);
  }
  return *this;
}

lease::~lease() {
  if (hold_) hold_->release();
}

result<void> lease::release() {
  const auto hold = std::exchange(hold_, nullptr);
  if (!hold) return failure(errc::not_held, "this lease holds nothing");
  // Not under the caller's patience: a release has a deadline of its own, in the core.
  return wait_for<void>(hold->runtime(),
                        [&](spi::completion<void> done) { hold->release(std::move(done)); });
}

bool lease::valid() const noexcept { return hold_ && hold_->valid(); }

time_point lease::valid_until() const noexcept {
  return hold_ ? hold_->valid_until() : time_point::min();
}

duration lease::valid_for() const noexcept {
  const time_point end = valid_until();
  if (end == time_point::max()) return forever;
  const time_point now = clock::now();
  return end <= now ? duration{0} : end - now;
}

std::stop_token lease::lost() const {
  if (hold_) return hold_->lost();
  std::stop_source none;
  none.request_stop();
  return none.get_token();
}

std::stop_token lease::wanted() const { return hold_ ? hold_->wanted() : std::stop_token{}; }

fence_token lease::fence() const noexcept { return hold_ ? hold_->fence() : fence_token{}; }

duration lease::ttl() const noexcept { return hold_ ? hold_->ttl() : duration{0}; }

bool lease::degraded() const noexcept { return hold_ && hold_->degraded(); }

const std::string& lease::name() const noexcept {
  static const std::string none;
  return hold_ ? hold_->claim().resource.name : none;
}

std::string lease::claim() const {
  return hold_ ? spi::public_id(hold_->claim().id) : std::string{};
}

}  // namespace holdfast
