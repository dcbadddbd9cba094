// What can happen next in an explored world.
#include "explore/small_world.hpp"

#include <algorithm>

namespace holdfast::explore {

using sim::event_loop;
using sim::moment;

namespace {

// Far more events than any machine needs at one moment: beyond that, one keeps setting a timer that
// is already due.
constexpr std::uint32_t crowded = 200;
constexpr duration a_little = std::chrono::milliseconds(1);

bool earlier(const event_loop::scheduled& left, const event_loop::scheduled& right) {
  return left.when != right.when ? left.when < right.when : left.sequence < right.sequence;
}

}  // namespace

// The first event of each channel that is not stalled and does not belong to a paused machine.
void small_world::list_events() {
  loop_.list(events_);
  std::sort(events_.begin(), events_.end(), earlier);
  enabled_.clear();
  next_ = moment::max();
  std::vector<channel> seen;
  for (const event_loop::scheduled& each : events_) {
    const channel of{each.owner, each.channel};
    if (std::find(seen.begin(), seen.end(), of) != seen.end()) continue;
    seen.push_back(of);
    if (each.owner->paused() || stalled_.contains(of)) continue;
    if (each.when <= loop_.now()) {
      enabled_.push_back(each);
    } else {
      next_ = std::min(next_, each.when);
    }
  }
}

bool small_world::over() const {
  if (!stalled_.empty() || cut_off_ != sim::nobody) return false;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i]->dead) continue;
    if (processes_[i]->paused() || !callers_[i]->over()) return false;
    if (processes_[i]->engine().live_claims() > 0) return false;
  }
  return true;
}

void small_world::choices(std::vector<choice>& into) {
  into.clear();
  list_events();
  if (over() || loop_.now() > horizon) return;
  if (in_this_moment_ >= crowded) {
    into.push_back({.what = choice::kind::advance, .when = loop_.now() + a_little});
    return;
  }
  add_ends(into);
  for (const auto& each : enabled_) into.push_back(about(choice::kind::run, each));
  if (enabled_.empty() && next_ != moment::max() && !must_act(next_)) {
    into.push_back({.what = choice::kind::advance, .when = next_});
  }
  add_callers(into);
  add_faults(into);
}

// Whether time must not advance to that point before some caller has acted, or some trouble has
// ended.
bool small_world::must_act(moment at) const {
  const duration longest = scenario_.longest_trouble;
  if (!stalled_.empty() && at - stalled_since_ > longest) return true;
  if (cut_off_ != sim::nobody && at - cut_off_since_ > longest) return true;
  for (std::size_t i = 0; i < callers_.size(); ++i) {
    const caller& each = *callers_[i];
    if (processes_[i]->dead) continue;
    if (processes_[i]->paused()) {
      if (at - paused_since_ > longest) return true;
      continue;
    }
    if (each.may_ask() && at - each.idle_since() > scenario_.asked_by) return true;
    if (each.may_release() && at - each.holds_since() > scenario_.longest_hold) return true;
  }
  return false;
}

// Of clients with the same role the first asks first: the other orders differ only in names.
bool small_world::may_ask(std::size_t index) const {
  if (!callers_[index]->may_ask()) return false;
  if (index == 0 || callers_[index]->asked()) return true;
  return !(scenario_.roles[index - 1] == scenario_.roles[index]) || callers_[index - 1]->asked();
}

void small_world::add_callers(std::vector<choice>& into) const {
  for (std::size_t i = 0; i < callers_.size(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    const caller& each = *callers_[i];
    if (processes_[i]->paused()) continue;
    if (may_ask(i)) into.push_back({.what = choice::kind::ask, .client = number});
    if (!in_turn(number) && !enabled_.empty()) continue;
    if (each.may_release()) into.push_back({.what = choice::kind::release, .client = number});
    if (each.may_change()) into.push_back({.what = choice::kind::change, .client = number});
    if (each.may_cancel() && may_strike(left_.cancels)) {
      into.push_back({.what = choice::kind::cancel, .client = number});
    }
  }
}

bool small_world::waits(std::size_t index) const {
  const sim::process& each = *processes_[index];
  return !each.dead && !each.paused() && callers_[index]->now() == caller::state::asking;
}

bool small_world::may_strike(std::uint32_t left) const noexcept {
  return left > 0 && left_.together > 0 && loop_.now() <= scenario_.trouble_until;
}

// First: a search that tries the last choice first lets troubles last.
void small_world::add_ends(std::vector<choice>& into) const {
  if (!moment_begins_ && !enabled_.empty()) return;
  const bool alone = enabled_.empty() && next_ == moment::max();  // nothing else can happen
  const auto lasted = [&](moment since) {
    return alone || loop_.now() - since >= scenario_.shortest_trouble;
  };
  if (!stalled_.empty() && lasted(stalled_since_)) into.push_back({.what = choice::kind::unstall});
  if (cut_off_ != sim::nobody && lasted(cut_off_since_)) {
    into.push_back({.what = choice::kind::heal, .client = cut_off_});
  }
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i]->dead || !processes_[i]->paused() || !lasted(paused_since_)) continue;
    into.push_back({.what = choice::kind::resume, .client = static_cast<std::int32_t>(i)});
  }
}

void small_world::add_faults(std::vector<choice>& into) const {
  for (const auto& each : enabled_) {
    if (each.kind != sim::event_class::receipt || !fresh(each)) continue;
    if (may_strike(left_.losses)) into.push_back(about(choice::kind::lose, each));
    if (may_strike(left_.stalls)) into.push_back(about(choice::kind::stall, each));
  }
  // Only where it makes a difference: where the server has just done something.
  if (may_strike(left_.wipes) && (moment_begins_ || last_client_ == sim::nobody)) {
    into.push_back({.what = choice::kind::wipe});
  }
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < processes_.size(); ++i) waiting += waits(i) ? 1 : 0;
  // Only after a client's step: it commutes with the server's steps. Freezing a single client is a
  // pause.
  if (may_strike(left_.freezes) && waiting > 1 && last_client_ >= 0) {
    into.push_back({.what = choice::kind::freeze});
  }
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    const sim::process& each = *processes_[i];
    if (each.dead || each.paused()) continue;
    if (callers_[i]->now() == caller::state::idle || callers_[i]->over()) continue;
    if (may_strike(left_.pauses) && last_client_ == number) {
      into.push_back({.what = choice::kind::pause, .client = number});
    }
    if (may_strike(left_.outages) && (in_turn(number) || last_client_ == sim::nobody)) {
      into.push_back({.what = choice::kind::cut_off, .client = number});
    }
    if (may_strike(left_.crashes) && (in_turn(number) || last_client_ == sim::nobody)) {
      into.push_back({.what = choice::kind::crash, .client = number});
    }
  }
}

choice small_world::about(choice::kind what, const event_loop::scheduled& event) const {
  const auto owner = std::find_if(processes_.begin(), processes_.end(),
                                  [&](const auto& each) { return each.get() == event.owner; });
  const auto index = static_cast<std::int32_t>(owner - processes_.begin());
  return {.what = what,
          .client = owner == processes_.end() ? sim::nobody : index,
          .event = event.id,
          .channel = event.channel};
}

// True if it could not have been lost a step earlier.
bool small_world::fresh(const event_loop::scheduled& event) const noexcept {
  return moment_begins_ || event.sequence >= last_sequence_ || event.channel == last_channel_;
}

// True if this client could not have done a step earlier what it does now.
bool small_world::in_turn(std::int32_t index) const noexcept {
  return moment_begins_ || last_client_ == index;
}

}  // namespace holdfast::explore
