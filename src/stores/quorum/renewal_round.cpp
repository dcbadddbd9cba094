#include "core/mutant.hpp"
#include "stores/quorum/round.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::quorum {

using core::mutant;
using core::mutated;

renewal_round::renewal_round(std::shared_ptr<quorum_context> quorum_context,
                             std::vector<std::shared_ptr<round>> claims,
                             spi::function<void(answers)> done)
    : context_(std::move(quorum_context)),
      claims_(std::move(claims)),
      tallies_(claims_.size()),
      undecided_(claims_.size()),
      done_(std::move(done)) {}

void renewal_round::start(const spi::op_context& context) {
  sent_at_ = context_->runtime->now();
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (claims_[i] && claims_[i]->granted()) {
        claims_[i]->renewing(sent_at_);
        continue;
      }
      tallies_[i].decided = true;
      tallies_[i].verdict.state = spi::hold_state::lost;
      --undecided_;
    }
  }
  for (std::size_t i = 0; i < context_->members.size(); ++i) ask(i, context);
  one_less();
}

void renewal_round::ask(std::size_t member, const spi::op_context& context) {
  std::vector<std::size_t> which;
  std::vector<spi::claim_ptr> batch;
  std::vector<std::size_t> low;
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    const auto duty = claims_[i] ? claims_[i]->duty_at(member) : round::duty::nothing;
    if (duty == round::duty::raise) low.push_back(i);
    if (duty != round::duty::renew) continue;
    which.push_back(i);
    batch.push_back(claims_[i]->at_members());
  }
  {
    const std::lock_guard lock(mutex_);
    pending_ += low.size() + (batch.empty() ? 0 : 1);
  }
  for (const std::size_t i : low) {
    context_->members[member].store->raise(
        claims_[i]->at_members(), claims_[i]->fence(), context,
        [self = shared_from_this(), member, i](const result<spi::granted>& answer) {
          self->raised(member, i, answer);
        });
  }
  if (batch.empty()) return;
  context_->members[member].store->renew(
      std::move(batch), context,
      [self = shared_from_this(), member, which = std::move(which)](const result<answers>& answer) {
        self->answered(member, which, answer);
      });
}

void renewal_round::answered(std::size_t member, const std::vector<std::size_t>& which,
                             const result<answers>& answer) {
  const time_point now = context_->runtime->now();
  for (std::size_t i = 0; answer && i < which.size() && i < answer->size(); ++i) {
    const spi::renewal& each = (*answer)[i];
    context_->clocks.heard(member, now, each.at);
    claims_[which[i]]->renewed(member, sent_at_, each);
    const std::lock_guard lock(mutex_);
    count(which[i], each);
  }
  one_less();
}

void renewal_round::raised(std::size_t member, std::size_t which,
                           const result<spi::granted>& answer) {
  claims_[which]->raised(member, answer);
  spi::renewal seen;
  if (answer) {
    seen.state = spi::hold_state::renewed;
    seen.grant = *answer;
  } else if (answer.error() == errc::lost) {
    seen.state = spi::hold_state::lost;
  }
  {
    const std::lock_guard lock(mutex_);
    count(which, seen);
  }
  one_less();
}

void renewal_round::count(std::size_t which, const spi::renewal& answer) {
  tally& at = tallies_[which];
  if (at.decided) return;
  const bool young =
      answer.grant.counts_after > duration{0} && !mutated(mutant::quorum_young_member_counted);
  const bool renewed = answer.state == spi::hold_state::renewed;
  if (renewed || answer.state == spi::hold_state::held) {
    if (young) return;
    ++(renewed ? at.renewed : at.held);
    duration& ttl = renewed ? at.renewed_ttl : at.held_ttl;
    ttl = std::min(ttl, answer.grant.ttl);
    at.verdict.at = answer.at;
  } else if (answer.state == spi::hold_state::lost) {
    ++at.no;
  }
  decide(which);
}

// Members that hold it and no longer prolong it count only where there is no majority without them.
// If the rest is a majority, they prove nothing, but the core would take it for a revocation.
void renewal_round::decide(std::size_t which) {
  tally& at = tallies_[which];
  const std::size_t majority = majority_of(context_->members.size());
  const std::size_t others = context_->members.size() - majority;
  duration ttl = at.renewed_ttl;
  if (at.renewed >= majority) {
    at.verdict.state = spi::hold_state::renewed;
  } else if (at.no > others) {
    at.verdict.state = spi::hold_state::lost;
  } else if (at.renewed + at.held >= majority && (pending_ == 0 || at.held + at.no > others)) {
    const bool goes_on = at.held <= others && claims_[which]->at_members()->renewed;
    at.verdict.state = goes_on ? spi::hold_state::renewed : spi::hold_state::held;
    ttl = std::min(ttl, at.held_ttl);
  } else {
    return;
  }
  at.decided = true;
  --undecided_;
  if (at.verdict.state == spi::hold_state::lost) return;
  at.verdict.grant.fence = claims_[which]->fence();
  at.verdict.grant.ttl = ttl;
  at.verdict.grant.at = at.verdict.at;
  claims_[which]->proven(sent_at_, ttl);
}

// The answer does not wait for members that cannot change it.
void renewal_round::one_less() {
  spi::function<void(answers)> done;
  answers verdicts;
  {
    const std::lock_guard lock(mutex_);
    --pending_;
    for (std::size_t i = 0; pending_ == 0 && i < tallies_.size(); ++i) {
      if (!tallies_[i].decided) decide(i);
    }
    if (undecided_ > 0 && pending_ > 0) return;
    done = std::move(done_);
    if (!done) return;
    for (const tally& each : tallies_) verdicts.push_back(each.verdict);
  }
  done(std::move(verdicts));
}

}  // namespace holdfast::quorum
