// What a claim's runner sends: attempts, transfers and leaves, each for as long as it is useful.
#include "core/acquisition.hpp"
#include "core/claim_runner.hpp"
#include "core/dating.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

// The engine has said something, whatever it is.
bool answers(const result<spi::outcome>& given) noexcept {
  return given || (given.error() != errc::unavailable && given.error() != spi::not_sent);
}

}  // namespace

spi::op_context claim_runner::context(time_point now) const {
  return {.deadline = now + command_limit(engine_->settings().limit, claim_->ttl)};
}

// A failed connection is reported at once: the machine decides what it means for the claim, by its
// deadline and the retry policy.
spi::op_context claim_runner::attempt_context(time_point now) const {
  const bool tries = !claim_->queued;
  spi::op_context how = context(now);
  const duration limit = engine_->reach_limit(tries);
  how.reach_by = now + limit;
  how.at_once = tries;
  if (!tries) {
    // A grant is dated from now: any later than this, little of it would be left.
    how.useful_until = now + claim_->ttl / 3 * 2;
    // A little before the deadline, so that the cause is known by then.
    constexpr duration head_start = std::chrono::milliseconds(20);
    const time_point end = std::max(deadline_, now + engine_->settings().limit.last_try);
    how.reach_by = std::min(how.reach_by, end - head_start);
    if (!engine_->heard() && first_contact_ < time_point::max() - first_attempt_) {
      how.reach_by = std::min(how.reach_by, first_attempt_ + first_contact_);
    }
    return how;
  }
  how.reach_by = now + std::min(limit, patience_);
  // The very first call creates the engine's tables, and may need longer than a try has.
  if (engine_->heard()) how.deadline = std::min(how.deadline, now + limit);
  if (patience_ < how.deadline - now) how.deadline = now + patience_;
  return how;
}

// A failed connection is the answer here, too: the machine goes on in the background.
spi::op_context claim_runner::leave_context(time_point now, bool unanswered) const {
  spi::op_context how = context(now);
  how.unanswered = unanswered;
  how.reach_by = now + engine_->reach_limit(true);
  how.at_once = true;
  return how;
}

void claim_runner::send_attempt(time_point sent_at) {
  slot taken = std::exchange(admitted_, 0);
  const precedence rank = machine_.known() ? precedence::known : precedence::fresh;
  if (taken == 0) taken = engine_->window().enter(shared_from_this(), rank, sent_at);
  if (taken == 0) {
    in_window_ = true;
    machine_.postpone(sent_at);
    return;
  }
  if (mutated(mutant::new_id_on_retry) && attempts_ > 0) {
    auto other = std::make_shared<spi::claim>(*claim_);
    other->id = engine_->new_claim_id();
    claim_ = std::move(other);
  }
  if (attempts_++ == 0) first_attempt_ = sent_at;
  ask(sent_at, [self = shared_from_this(), sent_at, taken](result<spi::outcome> answer) {
    core::engine& owner = *self->engine_;
    owner.judge(answer ? nullptr : &answer.error());
    const bool usable = answers(answer);
    const bool unsent = !answer && answer.error().unsent;
    const time_point now = owner.runtime().now();
    self->attempt_answer_ = std::move(answer);
    self->feed(now, [self = self.get(), sent_at](time_point at) {
      return self->machine_.attempted(at, sent_at, self->attempt_answer_);
    });
    // A request that was never sent says nothing about the engine's speed.
    if (unsent) return owner.window().give_back(taken, now);
    if (usable && owner.meter() != nullptr) owner.meter()->round_trip(now - sent_at);
    owner.window().answered(taken, sent_at, now, usable);
  });
}

// Asks for the lock, or for a lease that exists already.
void claim_runner::ask(time_point sent_at, spi::completion<spi::outcome> done) {
  const spi::op_context how = attempt_context(sent_at);
  const std::optional<adoption>& adopts = requester_->wanted().adopts;  // while it seeks
  if (!adopts) return engine_->store().attempt(claim_, shared_from_this(), how, std::move(done));
  engine_->store().transfer(adopts->from, claim_, shared_from_this(), how,
                            [done = std::move(done)](result<spi::granted> answer) mutable {
                              if (!answer) return done(tl::unexpected(std::move(answer.error())));
                              done(*answer);
                            });
}

void claim_runner::send_transfer(time_point sent_at, bool unanswered) {
  const spi::op_context how = leave_context(sent_at, unanswered);
  engine_->store().transfer(
      claim_->id, detached_, nullptr, how,
      [self = shared_from_this()](result<spi::granted> answer) {
        self->engine_->judge(answer ? nullptr : &answer.error());
        self->feed([self = self.get(), answer = std::move(answer)](time_point now) {
          return self->machine_.transferred(now, answer);
        });
      });
}

// Needs a slot like an attempt, or thousands of releases would keep renewals waiting; but none when the
// client is closed: then there are no renewals, and not much time.
void claim_runner::order_leave(time_point begun, bool unanswered, bool in_passing) {
  if (std::exchange(in_window_, false)) engine_->window().withdraw(*this);
  if (engine_->closed()) return send_leave(0, begun, unanswered, in_passing);
  const slot taken = engine_->window().enter(shared_from_this(), precedence::release, begun);
  if (taken != 0) return send_leave(taken, begun, unanswered, in_passing);
  waiting_leave_ = {unanswered, in_passing, context(begun).deadline};
}

// lost() fires before anyone else can be granted, and that is the notifier's work. If a callback
// keeps the notifier, it is sent after a ttl, or when the client has been closing for a while.
void claim_runner::order_leave_when_told(time_point begun, bool unanswered, bool in_passing) {
  waiting_leave_ = {unanswered, in_passing, std::min(tell_by_, end_of(begun, claim_->ttl)), false};
  engine_->runtime().notify([self = shared_from_this()] {
    self->feed([self = self.get()](time_point now) {
      self->order_untold_leave(now);
      return claim_machine::orders{};
    });
  });
}

void claim_runner::order_untold_leave(time_point now) {
  if (!waiting_leave_ || waiting_leave_->told) return;
  const waiting_leave what = *std::exchange(waiting_leave_, std::nullopt);
  order_leave(now, what.unanswered, what.in_passing);
}

void claim_runner::send_leave(slot taken, time_point sent_at, bool unanswered, bool in_passing) {
  spi::op_context how = leave_context(sent_at, unanswered);
  how.in_passing = in_passing;
  engine_->store().leave(
      claim_, how, [self = shared_from_this(), taken, sent_at](result<spi::departure> answer) {
        core::engine& owner = *self->engine_;
        // "Gone" may be answered without asking the engine.
        if (!answer || *answer != spi::departure::gone) {
          owner.judge(answer ? nullptr : &answer.error());
        }
        const bool usable = answer || answer.error() != errc::unavailable;
        const bool unsent = !answer && answer.error().unsent;
        const bool asked = !answer || *answer != spi::departure::gone;
        const time_point now = owner.runtime().now();
        self->leave_answer_ = std::move(answer);
        self->feed(now, [self = self.get()](time_point at) {
          const result<spi::departure>& given = self->leave_answer_;
          // Perhaps transferred after all, by a request that was never answered. Tried once: the
          // ttl ends it.
          if (self->detached_ && given && *given == spi::departure::gone) {
            self->engine_->store().leave(self->detached_, self->leave_context(at, false),
                                         [](const result<spi::departure>&) {});
          }
          return self->machine_.departed(at, given);
        });
        if (taken == 0) return;
        if (unsent) return owner.window().give_back(taken, now);
        if (usable && asked && owner.meter() != nullptr) owner.meter()->round_trip(now - sent_at);
        owner.window().answered(taken, sent_at, now, usable);
      });
}

void claim_runner::send_waiting_leave(slot taken, time_point now) {
  const waiting_leave what = *std::exchange(waiting_leave_, std::nullopt);
  send_leave(taken, now, what.unanswered, what.in_passing);
}

}  // namespace holdfast::core
