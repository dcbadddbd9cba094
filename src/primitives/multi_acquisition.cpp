#include "primitives/multi_acquisition.hpp"

#include "core/dating.hpp"
#include "primitives/lock_handle_inside.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace holdfast {

namespace {

// How long to wait for one lock of a slow engine while another is held.
constexpr duration longest_try = std::chrono::seconds(1);

// Two groups that take each other's locks in step could go on like that for long, the longer the
// slower the engine. A random pause after each failed round, first up to what the failed tries
// took, then up to twice and four times that, lets one of them finish.
constexpr unsigned most_doublings = 2;
constexpr duration longest_pause = std::chrono::milliseconds(250);

duration random_pause(spi::runtime& runtime, duration tried, unsigned failures) {
  const duration longest =
      std::min(tried * (1U << std::min(failures, most_doublings)), longest_pause);
  if (longest <= duration{0}) return duration{0};
  return duration(
      static_cast<duration::rep>(runtime.random() % static_cast<std::uint64_t>(longest.count())));
}

// Contention and outages are waited out; everything else is an answer.
bool passing(const error& why) { return why == errc::busy || why == errc::unavailable; }

error stopped_waiting() { return {errc::cancelled, "cancelled while waiting"}; }

}  // namespace

multi_acquisition::multi_acquisition(shared_parts parts, const acquire_options& options,
                                     std::uint64_t thread)
    : parts_(std::move(parts)),
      wait_(options.wait),
      thread_(thread),
      runtime_(parts_->front().inside().in().client->runtime),
      order_(parts_->size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  // Clients that take the locks in the same order are seldom in each other's way; different orders
  // work, too.
  std::stable_sort(order_.begin(), order_.end(), [this](std::size_t left, std::size_t right) {
    return (*parts_)[left].inside().name() < (*parts_)[right].inside().name();
  });
}

std::size_t multi_acquisition::which(std::size_t step) const noexcept {
  return order_[(first_ + step) % order_.size()];
}

void multi_acquisition::start(spi::completion<multi_lease> done) {
  const time_point now = runtime_->now();
  deadline_ = core::end_of(now, wait_);
  {
    const std::lock_guard lock(mutex_);
    done_ = std::move(done);
  }
  begin_round();
}

void multi_acquisition::begin_round() {
  step_ = 0;
  leases_.clear();
  leases_.resize(parts_->size());
  take_next();
}

void multi_acquisition::take_next() {
  const detail::lock_handle::inside& in = (*parts_)[which(step_)].inside().in();
  duration wait{0};
  if (step_ == 0) {
    wait = wait_ <= duration{0} || deadline_ == time_point::max() ? wait_
                                                                  : deadline_ - runtime_->now();
  }
  core::request request = in.request({.wait = wait});
  request.thread = thread_;
  std::uint64_t serial = 0;
  bool stopped = false;
  {
    const std::lock_guard lock(mutex_);
    serial = ++serial_;
    late_ = false;
    stopped = cancelled_;
  }
  if (stopped) return answer(tl::unexpected(stopped_waiting()));
  const bool limited = step_ > 0;
  const auto acquisition = in.client->engine->acquire(
      std::move(request),
      [self = shared_from_this(), serial](result<std::shared_ptr<core::hold>> answer) {
        self->took(serial, std::move(answer));
      });
  {
    const std::lock_guard lock(mutex_);
    if (serial != serial_ || !acquisition) return;  // answered
    current_ = acquisition;
    stopped = cancelled_;
    if (limited) {
      timer_ = runtime_->at(runtime_->now() + longest_try, [weak = weak_from_this(), serial] {
        const auto alive = weak.lock();
        if (!alive) return;
        std::shared_ptr<core::acquisition> slow;
        {
          const std::lock_guard inner(alive->mutex_);
          if (alive->serial_ != serial) return;
          alive->late_ = true;
          slow = alive->current_;
        }
        if (slow) slow->cancel();
      });
    }
  }
  if (stopped) acquisition->cancel();
}

void multi_acquisition::took(std::uint64_t serial, result<std::shared_ptr<core::hold>> answer) {
  spi::runtime::timer_id timer = 0;
  bool late = false;
  {
    const std::lock_guard lock(mutex_);
    if (serial != serial_) return;
    ++serial_;
    current_.reset();
    timer = std::exchange(timer_, 0);
    late = late_ && !cancelled_;
  }
  if (timer != 0) runtime_->cancel(timer);
  if (!answer) {
    return end_round(late ? error{errc::unavailable, "no answer within 1 s"} : answer.error());
  }
  leases_[which(step_)] = lease(std::move(*answer));
  if (step_ == 0) tries_begun_ = runtime_->now();
  if (++step_ < parts_->size()) return take_next();
  took_all();
}

void multi_acquisition::took_all() {
  multi_lease all(std::exchange(leases_, {}));
  if (all.valid()) return answer(std::move(all));
  all = multi_lease{};
  step_ = 0;
  end_round({errc::lost, "one ended before all were there"});
}

void multi_acquisition::end_round(const error& why) {
  const bool again = why == errc::lost || (step_ > 0 && passing(why));
  const duration tried = step_ > 0 ? runtime_->now() - tries_begun_ : duration{0};
  leases_.clear();
  first_ = (first_ + step_) % order_.size();
  if (!again || wait_ <= duration{0}) return answer(tl::unexpected(why));
  pause(random_pause(*runtime_, tried, failures_++), why);
}

// Even a pause of zero goes through the runtime: rounds must not recurse deeper and deeper.
void multi_acquisition::pause(duration length, const error& why) {
  {
    const std::lock_guard lock(mutex_);
    pausing_ = true;
  }
  auto next = [self = shared_from_this(), why] { self->resume(why); };
  const time_point now = runtime_->now();
  if (length <= duration{0} || now >= deadline_) return runtime_->post(std::move(next));
  const time_point end = deadline_ - now < length ? deadline_ : now + length;
  runtime_->at(end, std::move(next));
}

void multi_acquisition::resume(const error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(pausing_, false)) return;
  }
  if (runtime_->now() < deadline_) return begin_round();
  answer(failure(why == errc::busy ? errc::timed_out : why.code, why.detail));
}

void multi_acquisition::cancel() noexcept {
  std::shared_ptr<core::acquisition> current;
  bool paused = false;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    current = current_;
    paused = std::exchange(pausing_, false);
  }
  if (current) current->cancel();
  if (paused) answer(tl::unexpected(stopped_waiting()));
}

void multi_acquisition::answer(result<multi_lease> outcome) {
  spi::completion<multi_lease> done;
  {
    const std::lock_guard lock(mutex_);
    done = std::move(done_);
  }
  if (done) done(std::move(outcome));
}

}  // namespace holdfast
