#include "core/hold.hpp"
#include "primitives/operation.hpp"
#include "primitives/wait_for.hpp"
#include "runtime/descriptor.hpp"

#include <holdfast/lease.hpp>

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast {

namespace {

const error nothing_held{errc::not_held, "this lease holds nothing"};

// Whichever comes first ends the wait: the loss, the release, the time, the token.
class lost_meeting {
 public:
  explicit lost_meeting(std::shared_ptr<spi::runtime> runtime) : meeting_(std::move(runtime)) {}

  void end(result<void> how) {
    if (!ended_.exchange(true)) meeting_.arrive(std::move(how));
  }
  result<void> wait() { return meeting_.wait(); }

 private:
  rendezvous<void> meeting_;
  std::atomic<bool> ended_{false};
};

class loss_operation final : public detail::client_operation<void> {
 public:
  explicit loss_operation(std::shared_ptr<core::hold> hold)
      : client_operation<void>(hold->owner()), hold_(std::move(hold)) {}

 private:
  void begin() override {
    const auto self = std::static_pointer_cast<loss_operation>(shared_from_this());
    const std::uint64_t watch =
        hold_->watch_end([self](result<void> how) { self->end(std::move(how)); });
    bool over = false;
    {
      const std::lock_guard lock(mutex_);
      watch_ = watch;
      over = ended_;
    }
    if (over) hold_->ignore_end(watch);
  }
  void stop() noexcept override {
    end(failure(errc::cancelled, "stopped while waiting for the loss"));
  }

  void end(result<void> how) {
    std::uint64_t watch = 0;
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(ended_, true)) return;
      watch = watch_;
    }
    if (watch != 0) hold_->ignore_end(watch);
    arrived(std::move(how));
  }

  const std::shared_ptr<core::hold> hold_;
  std::mutex mutex_;
  bool ended_ = false;       // guarded by mutex_
  std::uint64_t watch_ = 0;  // guarded by mutex_
};

}  // namespace

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
  if (!hold) return tl::unexpected(nothing_held);
  // Not under the caller's limit: a release has a deadline of its own, in the core.
  return wait_for<void>(hold->runtime(),
                        [&](spi::completion<void> done) { hold->release(std::move(done)); });
}

awaitable<void> lease::async_release() {
  auto hold = std::exchange(hold_, nullptr);
  if (!hold) return detail::make_refusal<void>(nothing_held);
  auto owner = hold->owner();
  return detail::call_soon<void>(
      std::move(owner),
      [hold = std::move(hold)](spi::completion<void> done) { hold->release(std::move(done)); });
}

result<std::string> lease::detach() {
  if (!hold_) return tl::unexpected(nothing_held);
  if (auto fine = check_may_block(*hold_->runtime()); !fine) {
    return tl::unexpected(std::move(fine.error()));
  }
  if (auto fine = hold_->detachable(); !fine) return tl::unexpected(std::move(fine.error()));
  const auto hold = std::exchange(hold_, nullptr);
  return wait_for<std::string>(
      hold->runtime(), [&](spi::completion<std::string> done) { hold->detach(std::move(done)); });
}

awaitable<std::string> lease::async_detach() {
  if (!hold_) return detail::make_refusal<std::string>(nothing_held);
  if (auto fine = hold_->detachable(); !fine) {
    return detail::make_refusal<std::string>(std::move(fine.error()));
  }
  auto hold = std::exchange(hold_, nullptr);
  auto owner = hold->owner();
  return detail::call_soon<std::string>(
      std::move(owner), [hold = std::move(hold)](spi::completion<std::string> done) {
        hold->detach(std::move(done));
      });
}

result<void> lease::wait_lost(duration wait, std::stop_token token) const {
  const auto hold = hold_;
  if (!hold) return tl::unexpected(nothing_held);
  const auto& runtime = hold->runtime();
  if (auto fine = check_may_block(*runtime); !fine) return fine;
  if (!hold->valid()) return {};
  auto meeting = std::make_shared<lost_meeting>(runtime);
  const std::uint64_t watch =
      hold->watch_end([meeting](result<void> how) { meeting->end(std::move(how)); });
  const std::stop_callback stopped(std::move(token), [&meeting] {
    meeting->end(failure(errc::cancelled, "stopped while waiting for the loss"));
  });
  const time_point now = runtime->now();
  std::optional<spi::runtime::timer_id> timer;
  if (wait < time_point::max() - now) {
    timer = runtime->at(now + std::max(wait, duration{0}),
                        [meeting] { meeting->end(failure(errc::timed_out, "not lost")); });
  }
  auto answer = meeting->wait();
  if (timer) runtime->cancel(*timer);
  hold->ignore_end(watch);
  return answer;
}

result<int> lease::lost_fd() const {
  if (!hold_) return tl::unexpected(nothing_held);
  const auto& runtime = hold_->runtime();
  // The descriptor is shared with the process that holds the lease: it must not be signalled here.
  if (runtime->forked()) return failure(errc::lost, "the lease belongs to the parent process");
  auto kept = std::static_pointer_cast<runtime::descriptor>(hold_->keep(nullptr));
  if (kept) return kept->get();
  auto made = std::make_shared<runtime::descriptor>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (made->get() < 0) {
    return failure(errc::overloaded,
                   "no descriptor for lost_fd: " + std::generic_category().message(errno));
  }
  kept = std::static_pointer_cast<runtime::descriptor>(hold_->keep(made));
  if (kept == made) {
    hold_->watch_end([made, runtime](const result<void>& how) {
      if (how && !runtime->forked()) ::eventfd_write(made->get(), 1);
    });
  }
  return kept->get();
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

awaitable<void> async_lost(const lease& held) {
  if (!held) return detail::make_refusal<void>(nothing_held);
  return awaitable<void>(std::make_shared<loss_operation>(held.inside()));
}

}  // namespace holdfast
