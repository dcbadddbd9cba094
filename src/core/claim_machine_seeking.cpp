// How a claim_machine seeks: attempts, wake-ups, places in the queue, the deadline.
#include "core/claim_machine.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

// A last try is worth it only if we have not asked for this long.
constexpr duration fresh_answer = std::chrono::milliseconds(10);

}  // namespace

claim_machine::orders claim_machine::start(time_point now) {
  if (phase_ != phase::seeking) return {};  // cancelled before it began
  return send_attempt(now);
}

claim_machine::orders claim_machine::attempted(time_point now, time_point sent_at,
                                               const result<spi::outcome>& answer) {
  attempting_ = false;
  last_sent_ = std::max(last_sent_, sent_at);
  // "Lost" is the engine's word for a request that came too late: treated as no answer.
  const bool unknown =
      !answer && (answer.error() == errc::unavailable || answer.error() == errc::lost);
  if (unknown) {
    unanswered_ = unanswered_ || !answer.error().unsent;
  } else {
    last_answered_sent_ = std::max(last_answered_sent_, sent_at);
  }
  if (expired(now)) return expire(now);
  if (phase_ == phase::held) {
    // I3: the push overtook this answer. Another fence is another grant: no proof of this one.
    const auto* grant = answer ? std::get_if<spi::granted>(&*answer) : nullptr;
    if (grant != nullptr && grant->fence == fence_) prove(sent_at, *grant);
    return {};
  }
  if (phase_ != phase::seeking) return {};
  if (unknown) {
    if (mutated(mutant::unknown_taken_as_success)) {
      return accept(now, sent_at, {.fence = fence_token(1), .ttl = settings_.ttl});
    }
    return unanswered_attempt(now, answer.error());
  }
  if (!answer && answer.error() == spi::not_sent) {
    // The breaker exists so that nobody waits for an engine that is known not to answer.
    return give_up(now, {errc::unavailable, answer.error().detail});
  }
  answered();
  last_answer_ = now;
  backoff_.reset();
  // Refused: this request changed nothing, but an earlier one may have.
  if (!answer) return give_up(now, answer.error());
  if (const auto* grant = std::get_if<spi::granted>(&*answer)) {
    return accept(now, mutated(mutant::proof_dated_at_answer) ? now : sent_at, *grant);
  }
  return blocked(now, sent_at, std::get<spi::blocked>(*answer));
}

void claim_machine::answered() noexcept {
  outage_ = false;
  attempts_ = 0;
  outage_until_ = time_point::max();
  contact_until_ = time_point::max();
}

claim_machine::orders claim_machine::blocked(time_point now, time_point sent_at,
                                             const spi::blocked& answer) {
  last_error_ = {errc::timed_out, answer.blocker.empty() ? std::string("held by another")
                                                         : "held by " + answer.blocker};
  in_line_ = answer.queued;
  known_ = known_ || settings_.queued;  // queued, or its wake-up is registered
  if (!settings_.queued) {
    last_error_.code = errc::busy;
    return give_up(now, last_error_);
  }
  if (in_line_) proof_ = waiting_proof{sent_at, answer.at};
  if (last_try_ || now >= seek_until_) return give_up(now, last_error_);
  if (std::exchange(woken_, false)) return send_attempt(now);
  orders todo;
  duration pause = std::min(answer.recheck_after, settings_.limit->recheck);
  if (!in_line_ && settings_.pushes) {
    todo.watch = true;
  } else if (!in_line_) {
    pause = std::min(pause, poll_);
    poll_ = std::min(poll_ * 2, settings_.limit->recheck);
  }
  next_at_ =
      mutated(mutant::no_recheck_bound) ? time_point::max() : now + std::max(pause, shortest_pause);
  return todo;
}

claim_machine::orders claim_machine::unanswered_attempt(time_point now, const error& why) {
  outage_ = true;
  known_ = known_ || !why.unsent;
  if (known_) contact_until_ = time_point::max();
  last_error_ = {errc::unavailable, why.detail, why.unsent};
  if (!settings_.queued || last_try_ || attempts_ >= settings_.retry.attempts || tired(now)) {
    return give_up(now, last_error_);
  }
  next_at_ = now + std::max(shortest_pause, backoff_.next(random()));
  return {};
}

claim_machine::orders claim_machine::accept(time_point now, time_point proven_at,
                                            const spi::granted& grant) {
  known_ = true;
  if (validity_end(proven_at, grant.ttl) - std::min(settings_.notice, grant.ttl / 2) <= now) {
    // I1: the answer took longer than the lease. Not accepted; the same claim asks again.
    last_error_ = {errc::unavailable, "the grant came too late"};
    outage_ = true;
    if (!settings_.queued || last_try_) return give_up(now, last_error_);
    if (attempting_) return {};
    next_at_ = now + std::max(shortest_pause, backoff_.next(random()));
    return {};
  }
  phase_ = phase::held;
  was_held_ = true;
  accepted_at_ = now;
  outdated_renewals_ = renewals_in_flight_;
  renewing_ = false;
  fence_ = grant.fence;
  degraded_ = grant.degraded;
  if (settings_.max_hold < time_point::max() - now) hold_until_ = now + settings_.max_hold;
  prove(proven_at, grant);
  if (doubted_) renew_at_ = now;  // "gone" may have overtaken this grant: ask at once
  orders todo;
  todo.settle = fence_;
  todo.wanted = grant.wanted;
  return todo;
}

claim_machine::orders claim_machine::watched(time_point now, const result<spi::armed>& answer) {
  if (phase_ != phase::seeking || attempting_) return {};
  if (!answer) {
    // No wake-up will come: poll, as for an engine that has none.
    next_at_ = std::min(next_at_, now + poll_);
    poll_ = std::min(poll_ * 2, settings_.limit->recheck);
    return {};
  }
  const bool gap = *answer == spi::armed::recheck;
  if (gap && !mutated(mutant::check_then_arm)) return send_attempt(now);
  return {};
}

claim_machine::orders claim_machine::notified(time_point now,
                                              const std::optional<spi::granted>& grant) {
  if (phase_ != phase::seeking) return {};  // I3, and what comes after leaving is void
  if (grant && attempting_ && mutated(mutant::early_grant_dropped)) return {};
  // The engine said later than this that we wait: what the push offered is over.
  const bool outdated = grant && proof_ && grant->at < proof_->answered_at;
  if (grant && !outdated) {
    // Never answered "waiting": any attempt, even the first, may have been the one that placed us.
    const waiting_proof proof =
        proof_.value_or(waiting_proof{first_sent_.value_or(last_sent_), grant->at});
    const time_point proven_at = date_push(now, proof, grant->at);
    // An offer with little time left would be lost before it can be taken up: taking it up comes
    // first.
    const bool late = grant->offer && validity_end(proven_at, grant->ttl) - now < grant->ttl / 2;
    if (!late) {
      orders todo = accept(now, proven_at, *grant);
      if (phase_ == phase::seeking && !attempting_) return send_attempt(now);
      return todo;
    }
    known_ = true;
  }
  if (attempting_) {
    // The answer on its way may be older than this wake-up.
    woken_ = !mutated(mutant::check_then_arm);
    return {};
  }
  return send_attempt(now);
}

claim_machine::orders claim_machine::refreshed_seeking(time_point now, time_point sent_at,
                                                       const spi::renewal& answer) {
  if (attempting_) return {};  // its own answer is newer
  switch (answer.state) {
    case spi::hold_state::waiting:
      answered();
      last_answer_ = now;
      backoff_.reset();
      proof_ = waiting_proof{sent_at, answer.at};
      next_at_ = now + std::clamp(answer.recheck_after, shortest_pause, settings_.limit->recheck);
      return {};
    case spi::hold_state::renewed:
    case spi::hold_state::held:
      return accept(now, sent_at, answer.grant);
    case spi::hold_state::lost:
      in_line_ = false;  // evicted: queue again
      return send_attempt(now);
    case spi::hold_state::unknown:
      outage_ = true;  // I2
      next_at_ = now + std::max(shortest_pause, backoff_.next(random()));
      return {};
  }
  return {};
}

void claim_machine::postpone(time_point now) {
  attempting_ = false;
  postponed_ = true;
  --attempts_;
  first_sent_ = first_sent_before_;
  last_sent_ = last_sent_before_;
  // A try has no deadline, since the engine answers it at once: here it gets the time of a command.
  if (!settings_.queued) starved_at_ = now + command_limit(*settings_.limit, settings_.ttl);
}

claim_machine::orders claim_machine::admitted(time_point now, duration usual) {
  if (!postponed()) return {};
  if (settings_.queued && seek_until_ - now <= usual * 2) return past_deadline(now);
  postponed_ = false;
  starved_at_ = time_point::max();
  return send_attempt(now);
}

// The wait is over before its turn came.
claim_machine::orders claim_machine::starve(time_point now) {
  orders todo = give_up(now, {errc::overloaded, "not sent in time"});
  todo.starved = true;
  return todo;
}

claim_machine::orders claim_machine::past_deadline(time_point now) {
  if (postponed_) return outage_ ? starve(now) : give_up(now, last_error_);
  if (attempting_ && !last_try_ && now - last_sent_ < settings_.limit->last_try) {
    // Too early to call it an outage: the attempt in flight is the last try.
    last_try_ = true;
    seek_until_ = last_sent_ + settings_.limit->last_try;
    return {};
  }
  if (attempting_ || outage_ || last_try_ || now - last_answer_ < fresh_answer) {
    if (outage_ && last_error_.code != errc::timed_out) last_error_.code = errc::unavailable;
    last_error_.unsent = last_error_.unsent && !attempting_;
    return give_up(now, last_error_);
  }
  // The lock may be free and its wake-up lost: ask once more before saying no.
  last_try_ = true;
  seek_until_ = now + settings_.limit->last_try;
  return send_attempt(now);
}

// Only an attempt that failed to connect counts as not reached: in a burst the others wait here for
// their turn.
time_point claim_machine::contact_end() const noexcept {
  return last_error_.unsent && !postponed_ ? contact_until_ : time_point::max();
}

bool claim_machine::tired(time_point now) const noexcept {
  const bool never_reached = now >= contact_end() && !attempting_;
  const bool waits = attempting_ || outage_ || postponed_;
  return settings_.queued && ((now >= outage_until_ && waits) || never_reached);
}

claim_machine::orders claim_machine::send_attempt(time_point now) {
  if (postponed_) return {};  // one is on its way to be sent
  attempting_ = true;
  woken_ = false;
  doubted_ = false;
  ++attempts_;
  if (outage_until_ == time_point::max() && settings_.retry.within < time_point::max() - now) {
    outage_until_ = now + settings_.retry.within;
  }
  if (!first_sent_ && settings_.first_contact < time_point::max() - now) {
    contact_until_ = now + settings_.first_contact;
  }
  next_at_ = time_point::max();
  first_sent_before_ = first_sent_;
  last_sent_before_ = std::exchange(last_sent_, now);
  if (!first_sent_) first_sent_ = now;
  orders todo;
  todo.attempt = true;
  return todo;
}

claim_machine::orders claim_machine::cancel(time_point now, const error& why) {
  if (phase_ != phase::seeking) return {};
  orders todo = give_up(now, why);
  if (mutated(mutant::cleanup_under_callers_token)) {
    todo.leave = false;
    phase_ = phase::ended;
  }
  return todo;
}

claim_machine::orders claim_machine::give_up(time_point now, error why) {
  orders todo;
  todo.settle = tl::unexpected<error>(std::move(why));
  if (known_ || attempting_) {
    begin_leaving(now);  // I4
    send_leave(todo);
  } else {
    todo.forget = first_sent_.has_value() && outage_;
    phase_ = phase::ended;
  }
  return todo;
}

}  // namespace holdfast::core
