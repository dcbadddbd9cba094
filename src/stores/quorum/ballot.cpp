#include "stores/quorum/ballot.hpp"

#include "core/mutant.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace holdfast::quorum {

using core::mutant;
using core::mutated;

namespace {

// Q3
bool counts(const spi::granted& grant) noexcept {
  return grant.counts_after <= duration{0} || mutated(mutant::quorum_young_member_counted);
}

}  // namespace

ballot::ballot(std::size_t members) : vote_states_(members) {}

template <class Condition>
std::size_t ballot::count(Condition condition) const {
  return static_cast<std::size_t>(
      std::count_if(vote_states_.begin(), vote_states_.end(), condition));
}

// Q1
std::size_t ballot::needed() const noexcept {
  if (mutated(mutant::quorum_majority_of_the_reachable)) {
    return majority_of(count([](const vote& each) { return each.state != vote_state::silent; }));
  }
  return majority_of(vote_states_.size());
}

std::size_t ballot::margin() const noexcept {
  return count([](const vote& each) { return each.state == vote_state::held && each.counts; });
}

bool ballot::ask(std::size_t member) {
  if (phase_ == phase::failed || vote_states_[member].state != vote_state::unasked) return false;
  vote_states_[member].state = vote_state::asked;
  return true;
}

ballot::orders ballot::answered(std::size_t member, const result<spi::outcome>& answer) {
  vote& from = vote_states_[member];
  if (from.state != vote_state::asked) return {};
  if (!answer) {
    take_refusal(from, answer.error());
  } else if (const auto* grant = std::get_if<spi::granted>(&*answer)) {
    take_grant(from, *grant);
  } else {
    const auto& no = std::get<spi::blocked>(*answer);
    from.state = vote_state::refused;
    ++blocked_;
    recheck_after_ = std::min(recheck_after_.value_or(no.recheck_after), no.recheck_after);
    if (blocker_.empty()) blocker_ = no.blocker;
    at_ = no.at;
  }
  return decide();
}

ballot::orders ballot::not_waiting_for(const std::vector<bool>& doubtful) {
  if (phase_ != phase::asking) return {};
  const auto minority = vote_states_.size() - majority_of(vote_states_.size());
  std::size_t open = 0;
  for (std::size_t i = 0; i < vote_states_.size(); ++i) {
    const bool waits = vote_states_[i].state == vote_state::asked;
    if (vote_states_[i].state == vote_state::unasked || (waits && !doubtful[i])) return {};
    open += waits ? 1 : 0;
  }
  const auto many = static_cast<std::size_t>(std::count(doubtful.begin(), doubtful.end(), true));
  if (open == 0 || many > minority) return {};
  for (vote& each : vote_states_) {
    if (each.state == vote_state::asked) each.state = vote_state::silent;
  }
  if (!silence_) silence_ = error{errc::unavailable, "silent for some time"};
  return decide();
}

void ballot::take_grant(vote& from, const spi::granted& grant) {
  const bool listed_twice =
      grant.server != 0 &&
      count([&](const vote& other) { return &other != &from && other.server == grant.server; }) > 0;
  duplicate_ = duplicate_ || listed_twice;
  from.server = grant.server;
  from.fence = grant.fence.value();
  from.ttl = grant.ttl;
  from.counts = counts(grant) && !listed_twice;
  youngest_ = std::max(youngest_, grant.counts_after);
  // Until the fence is chosen no member can be below it.
  const bool below = phase_ != phase::asking && from.fence < fence_.value();
  from.state = below ? vote_state::low : vote_state::held;
  at_ = grant.at;
}

void ballot::take_refusal(vote& from, const error& why) {
  // "Lost": an earlier request of this id was withdrawn there, and this one came too late.
  if (why == errc::unavailable || why == errc::lost || why == errc::cancelled) {
    from.state = vote_state::silent;
    from.unsent = why.unsent;
    if (!silence_) silence_ = why;
    return;
  }
  from.state = vote_state::refused;
  ++errors_;
  if (!error_) error_ = why;
}

ballot::orders ballot::decide() {
  if (phase_ == phase::failed) return {};
  if (phase_ == phase::granted) {
    orders todo;
    raise_low(todo);  // a late grant: one more member that may die
    return todo;
  }
  if (duplicate_) {
    return fail(failure(errc::invalid, "two members of the quorum are one and the same server"));
  }
  const std::size_t open = count([](const vote& each) {
    return each.state == vote_state::asked || each.state == vote_state::unasked;
  });
  const auto granted = [](const vote& each) {
    return (each.state == vote_state::held || each.state == vote_state::low) && each.counts;
  };
  // While no request could be sent to any member, the remaining ones decide whether
  // any was: they answer soon.
  const std::size_t unsent = count([](const vote& each) { return each.unsent; });
  const bool nobody_yet = open > 0 && unsent + open == vote_states_.size();
  if (count(granted) + open < needed()) return nobody_yet ? orders{} : fail(verdict());
  if (phase_ == phase::asking && count(granted) >= needed() &&
      (open == 0 || !mutated(mutant::quorum_majority_of_the_reachable))) {
    choose_fence();
  }
  if (phase_ != phase::raising) return {};
  if (margin() >= needed() || mutated(mutant::quorum_fence_not_written_back)) return report();
  orders todo;
  raise_low(todo);
  const std::size_t on_the_way = count([](const vote& each) {
    return each.raising && (each.counts || mutated(mutant::quorum_fence_written_back_anywhere));
  });
  if (margin() + on_the_way + open < needed()) return fail(verdict());
  return todo;
}

// Q2. If all members took the proposal, every vote has the fence already.
void ballot::choose_fence() {
  phase_ = phase::raising;
  std::uint64_t greatest = 0;
  for (const vote& each : vote_states_) {
    if (each.state == vote_state::held && each.counts) greatest = std::max(greatest, each.fence);
  }
  fence_ = fence_token(greatest);
  for (vote& each : vote_states_) {
    if (each.state == vote_state::held && each.fence < greatest) each.state = vote_state::low;
  }
}

void ballot::raise_low(orders& todo) {
  for (std::size_t i = 0; i < vote_states_.size(); ++i) {
    const bool anywhere = mutated(mutant::quorum_fence_written_back_anywhere) &&
                          vote_states_[i].state != vote_state::held && phase_ == phase::raising &&
                          !vote_states_[i].raised;
    if ((vote_states_[i].state != vote_state::low && !anywhere) || vote_states_[i].raising)
      continue;
    vote_states_[i].raising = true;
    vote_states_[i].raised = true;
    todo.raise.push_back(i);
  }
}

ballot::orders ballot::raised(std::size_t member, const result<spi::granted>& answer) {
  vote& from = vote_states_[member];
  const bool anywhere = mutated(mutant::quorum_fence_written_back_anywhere);
  from.raising = false;
  if (from.state != vote_state::low && !anywhere) return {};
  if (answer) {
    if (anywhere && from.state != vote_state::low) from.ttl = answer->ttl;
    from.counts = counts(*answer);
    from.fence = fence_.value();
    from.ttl = std::min(from.ttl, answer->ttl);
    from.state = vote_state::held;
  } else if (answer.error() == errc::lost) {
    from.state = vote_state::lost;
  } else {
    // It is unknown whether it was written, so this is not a vote; while we hold, it is topped up.
    from.state = vote_state::silent;
    if (!silence_) silence_ = answer.error();
  }
  return phase_ == phase::granted ? orders{} : decide();
}

ballot::orders ballot::report() {
  phase_ = phase::granted;
  spi::granted grant;
  grant.fence = fence_;
  grant.ttl = forever;
  for (const vote& each : vote_states_) {
    const bool counted =
        each.state == vote_state::held ||
        (mutated(mutant::quorum_fence_not_written_back) && each.state == vote_state::low);
    if (counted && each.counts) grant.ttl = std::min(grant.ttl, each.ttl);
  }
  grant.at = at_;
  orders todo;
  todo.settle = result<spi::outcome>(grant);
  raise_low(todo);
  return todo;
}

ballot::orders ballot::fail(result<spi::outcome> verdict) {
  phase_ = phase::failed;
  orders todo;
  todo.settle = std::move(verdict);
  for (std::size_t i = 0; i < vote_states_.size(); ++i) {
    const vote_state state = vote_states_[i].state;
    const bool certain = state == vote_state::held || state == vote_state::low;
    const bool possible = state == vote_state::asked ||
                          (state == vote_state::silent && !vote_states_[i].unsent) ||
                          state == vote_state::lost;
    if (certain || possible) todo.leave.push_back(i);
  }
  return todo;
}

ballot::orders ballot::end(error why) {
  if (phase_ == phase::failed) return {};
  const bool settled = phase_ == phase::granted;
  orders todo = fail(tl::unexpected<error>(std::move(why)));
  if (settled) todo.settle.reset();
  return todo;
}

// No majority is possible. Why? An outage is not contention: it is an outage if so many did not
// answer, do not count yet or refuse that the rest could not be a majority whatever it said.
result<spi::outcome> ballot::verdict() const {
  const std::size_t most_refusals = vote_states_.size() - majority_of(vote_states_.size());
  const std::size_t away = count([](const vote& each) {
    const bool young =
        (each.state == vote_state::held || each.state == vote_state::low) && !each.counts;
    return each.state == vote_state::silent || young;
  });
  if (away > most_refusals) return tl::unexpected<error>(outage());
  if (away + errors_ > most_refusals) return tl::unexpected<error>(*error_);
  spi::blocked no;
  // Two claims that split the members between them leave at once: there is
  // no known time to wait for.
  no.recheck_after = blocked_ > most_refusals ? recheck_after_.value_or(duration{0}) : duration{0};
  no.at = at_;
  no.blocker = blocker_;
  return spi::outcome(std::move(no));
}

error ballot::outage() const {
  const std::size_t silent =
      count([](const vote& each) { return each.state == vote_state::silent; });
  const std::size_t young = count([](const vote& each) {
    return (each.state == vote_state::held || each.state == vote_state::low) && !each.counts;
  });
  std::string text = "quorum of " + std::to_string(vote_states_.size());
  if (silent > 0) text += ", " + std::to_string(silent) + " did not answer";
  if (young > 0 && youngest_ > duration{0}) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(youngest_).count();
    text += ", " + std::to_string(young) + " are new or lost their state and count again within " +
            std::to_string(seconds) + " s";
  }
  if (silence_ && !silence_->detail.empty()) text += " (" + silence_->detail + ")";
  const std::size_t unsent = count([](const vote& each) { return each.unsent; });
  return {errc::unavailable, std::move(text), unsent == vote_states_.size()};
}

bool ballot::top_up(std::size_t member) {
  if (phase_ != phase::granted) return false;
  vote& at = vote_states_[member];
  if (at.state == vote_state::held || at.state == vote_state::low || at.state == vote_state::asked)
    return false;
  at = {};
  at.state = vote_state::asked;
  return true;
}

}  // namespace holdfast::quorum
