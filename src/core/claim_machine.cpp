#include "core/claim_machine.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::core {

claim_machine::claim_machine(const machine_settings& settings)
    : settings_(settings),
      backoff_(settings.retry),
      random_state_(settings.seed),
      seek_until_(settings.deadline),
      poll_(settings.limit->poll_first) {}

// --- held --------------------------------------------------------------------------------------

void claim_machine::prove(time_point proven_at, const spi::granted& grant) {
  const time_point end = validity_end(proven_at, grant.ttl);
  if (end >= valid_until_) {  // else an older proof that came late: validity only grows
    valid_until_ = end;
    granted_ttl_ = grant.ttl;
    offer_ = grant.offer;
    last_error_.detail.clear();
  }
  const bool completes = offer_ && !mutated(mutant::offer_never_completed);
  if (!completes && (offer_ || !settings_.renewed)) {
    renew_at_ = time_point::max();
    return;
  }
  duration after = std::min(grant.ttl, settings_.ttl) / 3;
  // Until it is taken up, a pause or an outage of two seconds would end a lease of thirty.
  if (offer_) after = std::min(after, settings_.limit->take_up);
  const duration jitter(static_cast<duration::rep>(
      random() % static_cast<std::uint64_t>(std::max<duration::rep>(1, after.count() / 10))));
  renew_at_ = proven_at + after - jitter;
}

claim_machine::orders claim_machine::refreshed_held(time_point now, time_point sent_at,
                                                    const spi::renewal& answer) {
  orders todo;
  switch (answer.state) {
    case spi::hold_state::renewed:
    case spi::hold_state::held:
      backoff_.reset();
      prove(sent_at, answer.grant);
      // The engine was asked to prolong it and did not: the holder is notified while there is time
      // to stop.
      if (answer.state == spi::hold_state::held && settings_.renewed) {
        const bool stays_blocked = settings_.lock_delay > duration{0};
        return revoked(now, loss_cause::taken, {errc::lost, "revoked: not renewed any more"},
                       stays_blocked ? time_point::max() : valid_until_);
      }
      todo.renewed = true;
      todo.wanted = answer.grant.wanted;
      return todo;
    case spi::hold_state::waiting:
    case spi::hold_state::lost:
      if (mutated(mutant::not_yours_taken_as_ok)) {
        prove(sent_at, {.fence = fence_, .ttl = settings_.ttl});
        return todo;
      }
      // A place in the queue, which only an older attempt can have taken, must not be left behind.
      return lose(
          now, loss_cause::taken, {errc::lost, "the engine no longer has this claim"},
          answer.state == spi::hold_state::waiting || may_reappear() ? now : time_point::max());
    case spi::hold_state::unknown:
      if (mutated(mutant::unknown_taken_as_loss)) {
        return lose(now, loss_cause::unconfirmed, {errc::lost, "no answer"}, now);
      }
      // I2: goes on until validity ends, a tenth of the lease at a time.
      renew_at_ =
          now + std::max(shortest_pause, std::min(settings_.ttl / 10, backoff_.next(random())));
      if (mutated(mutant::watchdog_stops_after_error)) renew_at_ = time_point::max();
      last_error_.detail = answer.why.empty() ? std::string("no answer") : answer.why;
      todo.renewal_failed = last_error_.detail;
      return todo;
  }
  return todo;
}

claim_machine::orders claim_machine::refreshed(time_point now, time_point sent_at,
                                               const spi::renewal& answer) {
  // I3: a request from before the grant says nothing against the grant, and its answer, which may
  // take longer than an offer lives, is not waited for.
  const bool outdated = phase_ == phase::held && outdated_renewals_ > 0 && sent_at <= accepted_at_;
  if (outdated) {
    --outdated_renewals_;
  } else {
    renewing_ = false;
  }
  if (renewals_in_flight_ > 0) --renewals_in_flight_;
  last_sent_ = std::max(last_sent_, sent_at);  // the batch left later than it was ordered
  if (answer.state != spi::hold_state::unknown) {
    last_answered_sent_ = std::max(last_answered_sent_, sent_at);
  }
  if (phase_ == phase::seeking) return refreshed_seeking(now, sent_at, answer);
  if (expired(now)) return expire(now);
  const bool held =
      answer.state == spi::hold_state::renewed || answer.state == spi::hold_state::held;
  if (outdated && !held) return {};
  if (phase_ == phase::held) return refreshed_held(now, sent_at, answer);
  if (phase_ == phase::leaving && mutated(mutant::renewal_after_release)) {
    renew_at_ = now + settings_.ttl / 3;
  }
  return {};
}

claim_machine::orders claim_machine::gone(time_point now, const error& why) {
  if (phase_ == phase::seeking) {
    in_line_ = false;
    proof_.reset();        // for a place that is gone, perhaps by another clock
    woken_ = attempting_;  // the answer on its way may be older than this
    doubted_ = attempting_;
    return attempting_ ? orders{} : send_attempt(now);
  }
  if (phase_ != phase::held) return {};
  return revoked(now, loss_cause::taken, why, may_reappear() ? valid_until_ : time_point::max());
}

// A safe revocation keeps others out until the lease has ended: no leave before that, unless the
// holder says by releasing that it has stopped.
claim_machine::orders claim_machine::revoked(time_point now, loss_cause cause, error why,
                                             time_point leave_from) {
  orders todo = lose(now, cause, std::move(why), leave_from);
  if (valid_until_ <= now) return todo;
  if (phase_ == phase::ended) begin_leaving(now);
  revoked_until_ = valid_until_;
  return todo;
}

// `leave_from`: when the claim may be left; max: there is nothing to leave.
claim_machine::orders claim_machine::lose(time_point now, loss_cause cause, error why,
                                          time_point leave_from) {
  orders todo;
  todo.loss = cause;
  todo.lose = std::move(why);
  if (leave_from == time_point::max()) {
    phase_ = phase::ended;
    return todo;
  }
  begin_leaving(now);
  leave_at_ = leave_from;
  if (leave_from <= now) send_leave(todo);
  return todo;
}

bool claim_machine::expired(time_point now) const noexcept {
  return phase_ == phase::held && now >= loss_at() && !mutated(mutant::local_deadline_unchecked);
}

// The engine may keep the claim for the margin longer, and others need not wait for that: it is
// left. But a holder that asked for notice is protected until validity ends. And if the lock stays
// blocked after an abnormal end, the engine must see one: it would take a leave for a release. A
// renewal that was carried out and not answered moves that end, so no moment is safe for a leave:
// the claim runs out.
claim_machine::orders claim_machine::let_run_out(time_point now, loss_cause cause,
                                                 const std::string& why) {
  const bool stays_blocked = settings_.lock_delay > duration{0};
  return lose(now, cause, {errc::lost, why}, stays_blocked ? time_point::max() : valid_until_);
}

// The engine would keep it: it is left when the time is over, or earlier when the holder releases
// it. If the lock stays blocked after an abnormal end, which this is, it runs out instead, if it
// ever does.
claim_machine::orders claim_machine::held_too_long(time_point now) {
  const bool stays_blocked =
      settings_.lock_delay > duration{0} && valid_until_ != time_point::max();
  return revoked(now, loss_cause::max_hold, {errc::lost, "held for its longest time"},
                 stays_blocked ? time_point::max() : hold_until_);
}

claim_machine::orders claim_machine::expire(time_point now) {
  if (hold_until_ <= valid_until_) return held_too_long(now);
  if (!settings_.renewed) {
    return let_run_out(now, loss_cause::ended, "not renewed, and its ttl has passed");
  }
  const std::string& last = last_error_.detail;
  return let_run_out(now, loss_cause::unconfirmed,
                     "the lease was not confirmed in time" + (last.empty() ? last : "; " + last));
}

// An attempt that was never answered may still arrive and place the claim again.
bool claim_machine::may_reappear() const noexcept { return unanswered_ || attempting_; }

claim_machine::orders claim_machine::send_renewal(time_point now) {
  renewing_ = true;
  ++renewals_in_flight_;
  last_sent_ = now;
  next_at_ = time_point::max();
  renew_at_ = time_point::max();
  orders todo;
  todo.renew = true;
  return todo;
}

// --- leaving -----------------------------------------------------------------------------------

claim_machine::orders claim_machine::release(time_point now) {
  orders todo;
  const bool revoked =
      phase_ == phase::leaving && now < revoked_until_ && !leave_in_flight_ && !detaching_;
  if (phase_ != phase::held && !revoked) {
    todo.released = failure(errc::lost, "the lease had ended before");
    return todo;
  }
  releasing_ = true;
  begin_leaving(now);
  send_leave(todo);
  return todo;
}

claim_machine::orders claim_machine::close(time_point now) {
  if (phase_ == phase::seeking) return cancel(now, {errc::cancelled, "the client was closed"});
  if (phase_ == phase::held) {
    return lose(now, loss_cause::closed, {errc::cancelled, "the client was closed"}, now);
  }
  if (detaching_) {
    detach_until_ = now;  // its answer is the last that is waited for
    return transfer_in_flight_ ? orders{} : retry_transfer(now);
  }
  if (phase_ == phase::leaving && !leave_in_flight_) {
    leave_at_ = now;  // there is not much time left for an answer
    return tick(now);
  }
  return {};
}

claim_machine::orders claim_machine::detach(time_point now) {
  orders todo;
  if (phase_ != phase::held || expired(now)) {
    todo.detached = failure(errc::lost, "the lease had ended before");
    return todo;
  }
  begin_leaving(now);
  if (mutated(mutant::renewed_by_both_sides)) renew_at_ = now;
  detaching_ = true;
  detach_until_ = std::min(valid_until(), now + command_limit(*settings_.limit, settings_.ttl));
  return retry_transfer(now);
}

// A transfer that is not answered in time may have been carried out, or may still be: once left,
// the claim can no longer be transferred, and a claim that it was transferred to ends with its ttl.
claim_machine::orders claim_machine::retry_transfer(time_point now) {
  orders todo;
  transfer_at_ = time_point::max();
  if (now < detach_until_) {
    transfer_in_flight_ = true;
    todo.transfer = true;
    todo.unanswered = may_reappear();
    return todo;
  }
  detaching_ = false;
  todo.detached = failure(errc::unavailable, last_error_.detail);
  send_leave(todo);
  return todo;
}

claim_machine::orders claim_machine::transferred(time_point now,
                                                 const result<spi::granted>& answer) {
  transfer_in_flight_ = false;
  if (!detaching_) return {};
  orders todo;
  if (answer || answer.error() == errc::not_held) {
    // Another fence: this hold had ended, a late attempt was granted, and that hold was
    // transferred.
    const bool moved = answer && answer->fence == fence_;
    detaching_ = false;
    todo.detached =
        moved ? result<void>{} : failure(errc::lost, "the engine no longer had this claim");
    if (moved || (!answer && !may_reappear())) {
      phase_ = phase::ended;
    } else {
      send_leave(todo);
    }
    return todo;
  }
  last_error_ = answer.error();
  const time_point again = now + std::max(shortest_pause, backoff_.next(random()));
  if (answer.error() != errc::unavailable || again >= detach_until_) {
    detach_until_ = now;
    return retry_transfer(now);
  }
  transfer_at_ = again;
  return todo;
}

void claim_machine::begin_leaving(time_point now) {
  phase_ = phase::leaving;
  backoff_.reset();
  if (mutated(mutant::renewal_after_release)) {
    renew_at_ = now + settings_.ttl / 3;
  } else {
    renew_at_ = time_point::max();  // I5
  }
}

void claim_machine::send_leave(orders& todo) {
  todo.leave = true;
  todo.unanswered = may_reappear();
  leave_in_flight_ = true;
  leave_at_ = time_point::max();
}

time_point claim_machine::abandon_at() const noexcept {
  const duration life =
      settings_.queued ? std::max(settings_.ttl, settings_.limit->waiter_lease) : settings_.ttl;
  const time_point from =
      mutated(mutant::release_given_up_at_answered) ? last_answered_sent_ : last_sent_;
  return from + life + drift_margin(life);
}

claim_machine::orders claim_machine::departed(time_point now,
                                              const result<spi::departure>& answer) {
  if (phase_ != phase::leaving) return {};
  leave_in_flight_ = false;
  orders todo;
  if (answer) {
    phase_ = phase::ended;
    if (std::exchange(releasing_, false)) {
      // The releasing caller gets the answer to the first leave, or learns that there was none.
      todo.released = *answer == spi::departure::was_holder
                          ? result<void>{}
                          : failure(errc::lost, "the engine no longer had this claim");
    }
    return todo;
  }
  todo = leave_delayed(answer.error());
  leave_at_ = now + std::max(shortest_pause, backoff_.next(random()));
  return todo;
}

claim_machine::orders claim_machine::leave_delayed(const error& why) {
  orders todo;
  if (!std::exchange(releasing_, false)) return todo;
  todo.released = failure(errc::unavailable, why.detail);
  todo.release_pending = true;
  return todo;
}

// --- time --------------------------------------------------------------------------------------

time_point claim_machine::loss_at() const noexcept {
  const time_point end = valid_until();
  if (end == time_point::max()) return end;
  return end - std::min(settings_.notice, granted_ttl_ / 2);  // an offer may be shorter
}

claim_machine::orders claim_machine::join(time_point now, time_point horizon) {
  if (phase_ == phase::held && !renewing_ && renew_at_ <= horizon && now < loss_at()) {
    return send_renewal(now);
  }
  if (phase_ == phase::seeking && in_line_ && !attempting_ && !renewing_ && next_at_ <= horizon &&
      now < seek_until_) {
    return send_renewal(now);
  }
  return {};
}

claim_machine::orders claim_machine::tick(time_point now) {
  switch (phase_) {
    case phase::seeking:
      if (settings_.queued && now >= seek_until_) return past_deadline(now);
      if (now >= starved_at_) return starve(now);
      if (tired(now)) {
        if (postponed_) return starve(now);
        return give_up(now, {errc::unavailable, last_error_.detail, last_error_.unsent && !known_});
      }
      if (next_at_ > now || attempting_ || renewing_) return {};
      return in_line_ && !outage_ ? send_renewal(now) : send_attempt(now);
    case phase::held:
      if (expired(now)) return expire(now);
      if (renew_at_ <= now && !renewing_) return send_renewal(now);
      return {};
    case phase::leaving: {
      if (mutated(mutant::renewal_after_release) && renew_at_ <= now && !renewing_) {
        return send_renewal(now);
      }
      if (mutated(mutant::renewed_by_both_sides) && renew_at_ <= now && !renewing_) {
        return send_renewal(now);
      }
      if (detaching_) {
        return transfer_in_flight_ || transfer_at_ > now ? orders{} : retry_transfer(now);
      }
      if (leave_in_flight_) return {};
      orders todo;
      if (leave_at_ == time_point::max() && revoked_until_ <= now) {
        phase_ = phase::ended;
        todo.forget = true;
        return todo;
      }
      if (leave_at_ > now) return {};
      if (now >= abandon_at() && !attempting_ && renewals_in_flight_ == 0) {
        phase_ = phase::ended;
        todo.release_abandoned = was_held_;
        return todo;
      }
      send_leave(todo);
      return todo;
    }
    case phase::ended:
      return {};
  }
  return {};
}

time_point claim_machine::wake_at() const noexcept {
  switch (phase_) {
    case phase::seeking:
      return std::min(
          settings_.queued ? std::min(seek_until_, outage_until_) : starved_at_,
          attempting_ || renewing_ ? time_point::max() : std::min(next_at_, contact_end()));
    case phase::held:
      return std::min(loss_at(), renewing_ ? time_point::max() : renew_at_);
    case phase::leaving:
      if (detaching_) return std::min(transfer_at_, renew_at_);
      if (!leave_in_flight_ && leave_at_ == time_point::max()) return revoked_until_;
      return std::min(leave_in_flight_ ? time_point::max() : leave_at_,
                      renewing_ ? time_point::max() : renew_at_);
    case phase::ended:
      return time_point::max();
  }
  return time_point::max();
}

std::uint64_t claim_machine::random() noexcept {
  random_state_ += 0x9e3779b97f4a7c15ULL;  // splitmix64
  std::uint64_t z = random_state_;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

}  // namespace holdfast::core
