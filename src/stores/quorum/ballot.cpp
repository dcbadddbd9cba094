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

ballot::ballot(std::size_t members) : seats_(members) {}

template <class Condition>
std::size_t ballot::count(Condition condition) const {
  return static_cast<std::size_t>(std::count_if(seats_.begin(), seats_.end(), condition));
}

// Q1
std::size_t ballot::needed() const noexcept {
  if (mutated(mutant::quorum_majority_of_the_reachable)) {
    return majority_of(count([](const vote& each) { return each.state != seat::silent; }));
  }
  return majority_of(seats_.size());
}

std::size_t ballot::margin() const noexcept {
  return count([](const vote& each) { return each.state == seat::held && each.counts; });
}

bool ballot::ask(std::size_t member) {
  if (phase_ == phase::failed || seats_[member].state != seat::unasked) return false;
  seats_[member].state = seat::asked;
  return true;
}

ballot::orders ballot::answered(std::size_t member, const result<spi::outcome>& answer) {
  vote& from = seats_[member];
  if (from.state != seat::asked) return {};
  if (!answer) {
    take_refusal(from, answer.error());
  } else if (const auto* grant = std::get_if<spi::granted>(&*answer)) {
    take_grant(from, *grant);
  } else {
    const auto& no = std::get<spi::blocked>(*answer);
    from.state = seat::refused;
    ++blocked_;
    recheck_after_ = std::min(recheck_after_.value_or(no.recheck_after), no.recheck_after);
    if (blocker_.empty()) blocker_ = no.blocker;
    at_ = no.at;
  }
  return decide();
}

ballot::orders ballot::not_waiting_for(const std::vector<bool>& doubtful) {
  if (phase_ != phase::asking) return {};
  const auto minority = seats_.size() - majority_of(seats_.size());
  std::size_t open = 0;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const bool waits = seats_[i].state == seat::asked;
    if (seats_[i].state == seat::unasked || (waits && !doubtful[i])) return {};
    open += waits ? 1 : 0;
  }
  const auto many = static_cast<std::size_t>(std::count(doubtful.begin(), doubtful.end(), true));
  if (open == 0 || many > minority) return {};
  for (vote& each : seats_) {
    if (each.state == seat::asked) each.state = seat::silent;
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
  // Until the fence is chosen nobody can be below it.
  const bool below = phase_ != phase::asking && from.fence < fence_.value();
  from.state = below ? seat::low : seat::held;
  at_ = grant.at;
}

void ballot::take_refusal(vote& from, const error& why) {
  // "Lost": an earlier request of this id was withdrawn there, and this one came too late.
  if (why == errc::unavailable || why == errc::lost || why == errc::cancelled) {
    from.state = seat::silent;
    from.unsent = why.unsent;
    if (!silence_) silence_ = why;
    return;
  }
  from.state = seat::refused;
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
  const std::size_t open = count(
      [](const vote& each) { return each.state == seat::asked || each.state == seat::unasked; });
  const auto granted = [](const vote& each) {
    return (each.state == seat::held || each.state == seat::low) && each.counts;
  };
  // Where nobody could be asked so far, the rest decides whether anybody was: it answers soon.
  const std::size_t unsent = count([](const vote& each) { return each.unsent; });
  const bool nobody_yet = open > 0 && unsent + open == seats_.size();
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

// Q2. Where all members took the proposal, every seat has the fence already.
void ballot::choose_fence() {
  phase_ = phase::raising;
  std::uint64_t greatest = 0;
  for (const vote& each : seats_) {
    if (each.state == seat::held && each.counts) greatest = std::max(greatest, each.fence);
  }
  fence_ = fence_token(greatest);
  for (vote& each : seats_) {
    if (each.state == seat::held && each.fence < greatest) each.state = seat::low;
  }
}

void ballot::raise_low(orders& todo) {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const bool anywhere = mutated(mutant::quorum_fence_written_back_anywhere) &&
                          seats_[i].state != seat::held && phase_ == phase::raising &&
                          !seats_[i].raised;
    if ((seats_[i].state != seat::low && !anywhere) || seats_[i].raising) continue;
    seats_[i].raising = true;
    seats_[i].raised = true;
    todo.raise.push_back(i);
  }
}

ballot::orders ballot::raised(std::size_t member, const result<spi::granted>& answer) {
  vote& from = seats_[member];
  const bool anywhere = mutated(mutant::quorum_fence_written_back_anywhere);
  from.raising = false;
  if (from.state != seat::low && !anywhere) return {};
  if (answer) {
    if (anywhere && from.state != seat::low) from.ttl = answer->ttl;
    from.counts = counts(*answer);
    from.fence = fence_.value();
    from.ttl = std::min(from.ttl, answer->ttl);
    from.state = seat::held;
  } else if (answer.error() == errc::lost) {
    from.state = seat::lost;
  } else {
    // Not known whether it was written, so no vote; while we hold it is topped up.
    from.state = seat::silent;
    if (!silence_) silence_ = answer.error();
  }
  return phase_ == phase::granted ? orders{} : decide();
}

ballot::orders ballot::report() {
  phase_ = phase::granted;
  spi::granted grant;
  grant.fence = fence_;
  grant.ttl = forever;
  for (const vote& each : seats_) {
    const bool counted =
        each.state == seat::held ||
        (mutated(mutant::quorum_fence_not_written_back) && each.state == seat::low);
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
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const seat state = seats_[i].state;
    const bool certain = state == seat::held || state == seat::low;
    const bool possible =
        state == seat::asked || (state == seat::silent && !seats_[i].unsent) || state == seat::lost;
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

// No majority can be had. Why? An outage is not contention: it is one where so many did not answer,
// do not count yet or refuse that the rest could not be a majority whatever it said.
result<spi::outcome> ballot::verdict() const {
  const std::size_t most_refusals = seats_.size() - majority_of(seats_.size());
  const std::size_t away = count([](const vote& each) {
    const bool young = (each.state == seat::held || each.state == seat::low) && !each.counts;
    return each.state == seat::silent || young;
  });
  if (away > most_refusals) return tl::unexpected<error>(outage());
  if (away + errors_ > most_refusals) return tl::unexpected<error>(*error_);
  spi::blocked no;
  // Two that split the members between them leave at once: no time to wait for is known.
  no.recheck_after = blocked_ > most_refusals ? recheck_after_.value_or(duration{0}) : duration{0};
  no.at = at_;
  no.blocker = blocker_;
  return spi::outcome(std::move(no));
}

error ballot::outage() const {
  const std::size_t silent = count([](const vote& each) { return each.state == seat::silent; });
  const std::size_t young = count([](const vote& each) {
    return (each.state == seat::held || each.state == seat::low) && !each.counts;
  });
  std::string text = "quorum of " + std::to_string(seats_.size());
  if (silent > 0) text += ", " + std::to_string(silent) + " did not answer";
  if (young > 0 && youngest_ > duration{0}) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(youngest_).count();
    text += ", " + std::to_string(young) + " are new or lost their state and count again within " +
            std::to_string(seconds) + " s";
  }
  if (silence_ && !silence_->detail.empty()) text += " (" + silence_->detail + ")";
  const std::size_t unsent = count([](const vote& each) { return each.unsent; });
  return {errc::unavailable, std::move(text), unsent == seats_.size()};
}

bool ballot::top_up(std::size_t member) {
  if (phase_ != phase::granted) return false;
  vote& at = seats_[member];
  if (at.state == seat::held || at.state == seat::low || at.state == seat::asked) return false;
  at = {};
  at.state = seat::asked;
  return true;
}

}  // namespace holdfast::quorum
