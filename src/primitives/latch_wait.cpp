#include "primitives/latch_wait.hpp"

#include "core/dating.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {

namespace {

constexpr duration latch_recheck = std::chrono::seconds(1);
constexpr duration shortest_pause = std::chrono::milliseconds(1);
constexpr duration last_look = std::chrono::milliseconds(100);  // how long the final look may take

}  // namespace

latch_wait::latch_wait(std::shared_ptr<client::state> client, spi::resource_id resource,
                       duration wait, spi::completion<void> done)
    : client_(std::move(client)),
      resource_(std::move(resource)),
      deadline_(core::end_of(client_->runtime->now(), wait)),
      done_(std::move(done)),
      backoff_(client_->options.retry) {}

void latch_wait::start(std::stop_token token) {
  const auto self = shared_from_this();
  if (token.stop_requested()) return answer(failure(errc::cancelled, "stopped before it began"));
  if (auto fine = client_->usable(); !fine) return answer(std::move(fine));
  const auto place = client_->waits.add(self);
  if (!place) return answer(tl::unexpected(place.error()));
  {
    const std::lock_guard lock(mutex_);
    place_ = *place;
  }
  look();
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    waits = static_cast<bool>(done_);
  }
  if (!waits) return client_->waits.remove(*place);
  // Outside the lock: a token that is stopped meanwhile calls back at once.
  if (token.stop_possible()) on_stop_.emplace(std::move(token), self);
}

void latch_wait::cancel(const error& why) noexcept { answer(tl::unexpected(why)); }

spi::latch_watch latch_wait::on_change() {
  return [self = weak_from_this(), runtime = std::weak_ptr(client_->runtime)] {
    const auto alive = runtime.lock();
    if (!alive) return;
    alive->post([self] {
      if (const auto waits = self.lock()) waits->look();
    });
  };
}

// A watch that fails is tried again with the next look: until then only the clock wakes us.
void latch_wait::watch() {
  auto made = client_->engine->store().watch_latch(resource_, on_change());
  if (!made) return;
  const std::lock_guard lock(mutex_);
  if (done_ && !subscription_) subscription_.swap(*made);
}

void latch_wait::look() {
  bool watched = false;
  const time_point now = client_->runtime->now();
  {
    const std::lock_guard lock(mutex_);
    if (!done_) return;
    again_ = looking_;
    if (std::exchange(looking_, true)) return;
    watched = subscription_ != nullptr;
  }
  // An engine that was never reached is not waited for indefinitely.
  const core::engine& engine = *client_->engine;
  const duration patience = engine.heard() ? forever : engine.reach_limit(false);
  if (unanswered_ == 0) {
    tired_at_ = core::end_of(now, std::min(client_->options.retry.within, patience));
  }
  if (!watched) watch();
  spi::op_context context = client_->soon();
  context.deadline = std::min({context.deadline, std::max(deadline_, now + last_look), tired_at_});
  client_->engine->store().read_latch(resource_, context,
                                      [self = shared_from_this()](result<spi::latch_state> state) {
                                        self->looked(std::move(state));
                                      });
}

std::optional<result<void>> latch_wait::judge(const result<spi::latch_state>& answer,
                                              time_point now) {
  if (answer && answer->count == 0U) return result<void>{};
  if (!answer && !(answer.error() == errc::unavailable)) return tl::unexpected(answer.error());
  unanswered_ = answer ? 0 : unanswered_ + 1;
  const bool tired = unanswered_ >= client_->options.retry.attempts || now >= tired_at_;
  if (!answer && tired && now < deadline_) return tl::unexpected(answer.error());
  // The last look has little time: if it gets no answer, the answer to the previous look counts.
  const std::optional<spi::latch_state> before =
      std::exchange(seen_, answer ? std::optional(*answer) : std::nullopt);
  if (now < deadline_) return std::nullopt;
  const std::optional<spi::latch_state>& last = answer ? seen_ : before;
  if (!last) return tl::unexpected(answer.error());
  return failure(errc::timed_out, last->count ? "the latch is at " + std::to_string(*last->count)
                                              : std::string("the latch is unset"));
}

void latch_wait::looked(result<spi::latch_state> state) {
  const time_point now = client_->runtime->now();
  client_->engine->judge(state ? nullptr : &state.error());
  if (auto outcome = judge(state, now)) return answer(std::move(*outcome));
  bool again = false;
  duration pause = latch_recheck;
  {
    const std::lock_guard lock(mutex_);
    looking_ = false;
    again = std::exchange(again_, false) && state;
    if (state) {
      backoff_.reset();
    } else {
      pause = std::max(shortest_pause, backoff_.next(client_->runtime->random()));
    }
  }
  if (again) return look();
  rest_until(std::min(deadline_, now + pause));
}

void latch_wait::rest_until(time_point when) {
  spi::runtime::timer_id old = 0;
  {
    // Set under the lock, or it could fire and be followed by another timer, which would be
    // cancelled here in its place: nobody would look again. A runtime's at() never calls back.
    const std::lock_guard lock(mutex_);
    if (!done_) return;
    old = std::exchange(timer_, client_->runtime->at(when, [self = weak_from_this()] {
      if (const auto waits = self.lock()) waits->look();
    }));
  }
  if (old != 0) client_->runtime->cancel(old);
}

void latch_wait::answer(result<void> outcome) noexcept {
  spi::completion<void> done;
  std::unique_ptr<spi::subscription> ended;
  std::optional<std::uint64_t> place;
  spi::runtime::timer_id timer = 0;
  {
    const std::lock_guard lock(mutex_);
    done = std::move(done_);
    ended = std::move(subscription_);
    place = std::exchange(place_, std::nullopt);
    timer = std::exchange(timer_, 0);
  }
  if (!done) return;
  const auto self = shared_from_this();
  if (timer != 0) client_->runtime->cancel(timer);
  if (place) client_->waits.remove(*place);
  done(std::move(outcome));
}

}  // namespace holdfast
