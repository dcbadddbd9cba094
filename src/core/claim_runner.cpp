#include "core/claim_runner.hpp"

#include "core/acquisition.hpp"
#include "core/blame.hpp"
#include "core/hold.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::core {

claim_runner::claim_runner(std::shared_ptr<engine> engine, spi::claim_ptr claim,
                           const machine_settings& settings, std::shared_ptr<acquisition> requester)
    : engine_(std::move(engine)),
      deadline_(settings.deadline),
      first_contact_(settings.first_contact),
      patience_(settings.retry.within),
      claim_(std::move(claim)),
      requester_(std::move(requester)),
      machine_(settings) {}

claim_runner::~claim_runner() = default;

void claim_runner::drain(std::unique_lock<std::mutex>& lock) {
  while (!inputs_.empty()) {
    {
      inbox::input step = inputs_.take();
      lock.unlock();
      const time_point now = engine_->runtime().now();
      after_step(step(now), now);
    }
    lock.lock();
  }
  const bool ended = machine_.where() == claim_machine::phase::ended;
  running_ = false;
  lock.unlock();
  if (ended) engine_->discharge(*this);
}

void claim_runner::after_step(claim_machine::orders&& todo, time_point now) {
  publish();
  carry_out(std::move(todo), now);
  if (std::exchange(announced_, false)) engine_->departing().sent(claim_->resource);
  if (in_window_ && !machine_.postponed()) {
    in_window_ = false;
    engine_->window().withdraw(*this);
  }
  time_point wake = machine_.wake_at();
  if (waiting_leave_) wake = std::min(wake, waiting_leave_->until);
  if (wake != time_point::max()) engine_->schedule().schedule(shared_from_this(), wake);
}

void claim_runner::publish() noexcept {
  const claim_machine::phase phase = machine_.where();
  const bool held = phase == claim_machine::phase::held;
  renewable_.store(held || phase == claim_machine::phase::seeking ||
                       mutated(mutant::renewal_after_release) ||
                       mutated(mutant::renewed_by_both_sides),
                   std::memory_order_release);
  valid_until_.store((held ? machine_.valid_until() : time_point::min()).time_since_epoch().count(),
                     std::memory_order_release);
  degraded_.store(machine_.degraded(), std::memory_order_release);
  ttl_.store(machine_.granted_ttl().count(), std::memory_order_release);
}

// `begun`: when the step began, so before whatever is sent here.
void claim_runner::carry_out(claim_machine::orders&& todo, time_point begun) {
  if (todo.wanted) tell_wanted();  // before anybody can hand it over
  const bool telling = todo.lose && tell_lost(*todo.lose, todo.loss);
  if (todo.attempt) send_attempt(begun);
  if (todo.watch) {
    // Ordered by the step that took this answer.
    engine_->store().watch(claim_, std::get<spi::blocked>(*attempt_answer_), context(begun),
                           [self = shared_from_this()](result<spi::armed> answer) {
                             self->feed([self = self.get(), answer](time_point now) {
                               return self->machine_.watched(now, answer);
                             });
                           });
  }
  if (todo.renew) engine_->watchdog().collect(shared_from_this());
  if (todo.transfer) send_transfer(begun, todo.unanswered);
  if (todo.leave && telling) {
    order_leave_when_told(begun, todo.unanswered, todo.settle.has_value());
  } else if (todo.leave) {
    order_leave(begun, todo.unanswered, todo.settle.has_value());
  }
  if (todo.forget) {
    engine_->store().leave(claim_, {.deadline = begun}, [](const result<spi::departure>&) {});
  }
  // After the leave: the requester's next request must not meet the claim it has just given up.
  if (todo.starved) todo.settle = tl::unexpected<error>(engine_->window().reason());
  if (todo.settle) settle(std::move(*todo.settle), begun);
  if (todo.released) answer_release(std::move(*todo.released), "release");
  if (todo.detached) answer_release(std::move(*todo.detached), "detach");
  if (core::meter* meter = engine_->meter()) {
    if (todo.renewed) meter->renewed();
    if (todo.renewal_failed) meter->renewal_failed();
  }
  if (engine_->observed()) {
    if (todo.renewed) engine_->raise(event_kind::renewed, *claim_, machine_.fence());
    if (todo.renewal_failed) {
      const error why = blamed({errc::unavailable, *std::move(todo.renewal_failed)},
                               engine_->settings().where, "renew", claim_->resource.name);
      engine_->raise(event_kind::renewal_failed, *claim_, machine_.fence(), {}, &why);
    }
    if (todo.release_pending) engine_->raise(event_kind::release_pending, *claim_);
    if (todo.release_abandoned) engine_->raise(event_kind::release_abandoned, *claim_);
  }
}

void claim_runner::answer_release(result<void> how, std::string_view verb) {
  spi::completion<void> done = std::exchange(on_released_, nullptr);
  if (!done) return;
  done(std::move(how).map_error([&](error why) {
    return blamed(std::move(why), engine_->settings().where, verb, claim_->resource.name);
  }));
}

void claim_runner::settle(result<fence_token> answer, time_point now) {
  const auto requester = std::exchange(requester_, nullptr);
  if (requester) requester->settled(shared_from_this(), std::move(answer), now);
}

bool claim_runner::tell_lost(const error& why, loss_cause cause) {
  std::shared_ptr<hold> holder;
  {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    holder = holder_.lock();
    holder_.reset();
  }
  // Without a holder nobody has lost anything: it was released, and is perhaps about to be handed
  // over.
  return holder && holder->tell_lost(why, cause);
}

void claim_runner::tell_wanted() {
  wanted_.store(true, std::memory_order_release);
  std::shared_ptr<hold> holder;
  {
    const std::lock_guard lock(mutex_);
    holder = holder_.lock();
  }
  if (holder) holder->tell_wanted();
}

bool claim_runner::attach(const std::shared_ptr<hold>& holder) {
  const std::lock_guard lock(mutex_);
  if (lost_) return false;
  holder_ = holder;
  return true;
}

void claim_runner::detach() noexcept {
  const std::lock_guard lock(mutex_);
  holder_.reset();
}

void claim_runner::start() {
  // Enlisted before the attempt is sent: whatever happens next, this claim is looked after.
  engine_->enlist(shared_from_this());
  // Its close() may have looked before we were on the list.
  if (engine_->closed()) close(time_point::max());
  feed([this](time_point now) { return machine_.start(now); });
}

void claim_runner::cancel(error why) noexcept {
  feed([this, why = std::move(why)](time_point now) { return machine_.cancel(now, why); });
}

void claim_runner::release(spi::completion<void> done) noexcept {
  if (engine_->runtime().forked()) return;
  const auto self = shared_from_this();
  const time_point now = engine_->runtime().now();
  std::unique_lock lock(mutex_);
  auto step = [this, done = std::move(done)](time_point at) mutable {
    on_released_ = std::move(done);
    return machine_.release(at);
  };
  if (!running_) return run(lock, now, step);
  // The thread that feeds the machine sends it later: the caller's next request must not overtake
  // it.
  engine_->departing().announce(claim_->resource);
  inputs_.add([this, step = std::move(step)](time_point at) mutable {
    announced_ = true;
    return step(at);
  });
}

void claim_runner::transfer_to(spi::claim_ptr to, spi::completion<void> done) noexcept {
  feed([this, to = std::move(to), done = std::move(done)](time_point now) mutable {
    on_released_ = std::move(done);
    detached_ = std::move(to);
    return machine_.detach(now);
  });
}

void claim_runner::close(time_point tell_by) noexcept {
  feed([this, tell_by](time_point now) {
    tell_by_ = tell_by;
    if (waiting_leave_ && waiting_leave_->told) {
      engine_->window().withdraw(*this);
      send_waiting_leave(0, now);
    } else if (waiting_leave_) {
      waiting_leave_->until = std::min(waiting_leave_->until, tell_by);
    }
    return machine_.close(now);
  });
}

void claim_runner::notify(std::optional<spi::granted> grant) noexcept {
  feed([this, grant](time_point now) { return machine_.notified(now, grant); });
}

void claim_runner::wanted() noexcept { tell_wanted(); }

void claim_runner::gone(const error& why) noexcept {
  feed([this, why](time_point now) { return machine_.gone(now, why); });
}

void claim_runner::due(time_point) {
  feed([this](time_point now) {
    if (!waiting_leave_ || now < waiting_leave_->until) return machine_.tick(now);
    if (!waiting_leave_->told) {
      order_untold_leave(now);
      return machine_.tick(now);
    }
    waiting_leave_->until = time_point::max();  // keeps its place: the lock must be released
    return machine_.leave_delayed(engine_->window().reason());
  });
}

void claim_runner::join(time_point, time_point horizon) {
  feed([this, horizon](time_point now) { return machine_.join(now, horizon); });
}

void claim_runner::admitted(slot taken, duration usual) {
  feed([this, taken, usual](time_point now) {
    if (waiting_leave_ && waiting_leave_->told) {
      send_waiting_leave(taken, now);
      return claim_machine::orders{};
    }
    claim_machine::orders todo = machine_.admitted(now, usual);
    if (todo.attempt) {
      admitted_ = taken;
    } else {
      engine_->window().give_back(taken, now);
    }
    return todo;
  });
}

void claim_runner::refreshed(time_point sent_at, const spi::renewal& answer) {
  if (answer.state != spi::hold_state::unknown && answer.from_engine) engine_->judge(nullptr);
  feed(
      [this, sent_at, answer](time_point now) { return machine_.refreshed(now, sent_at, answer); });
}

void claim_runner::change(spi::mode to, spi::completion<fence_token> done) {
  engine_->store().change(
      claim_, to, context(engine_->runtime().now()),
      [self = shared_from_this(), done = std::move(done)](result<spi::granted> answer) mutable {
        if (!answer) return done(tl::unexpected<error>(std::move(answer.error())));
        self->feed([self = self.get(), fence = answer->fence](time_point) {
          self->machine_.adopt(fence);
          return claim_machine::orders{};
        });
        done(answer->fence);
      });
}

}  // namespace holdfast::core
