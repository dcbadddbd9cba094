#include "core/attempt_window.hpp"

#include <algorithm>
#include <bit>

namespace holdfast::core {

namespace {

constexpr duration shortest_period = std::chrono::milliseconds(1);
constexpr duration fastest_counts_for = std::chrono::seconds(10);
constexpr duration rest_counts_from = std::chrono::seconds(1);

// Does not overflow if one of the two means "never".
duration since(time_point then, time_point now) noexcept {
  return then == time_point::min() ? duration::max() : now - then;
}

}  // namespace

// --- the census --------------------------------------------------------------------------------

std::size_t ttl_census::class_of(duration ttl) noexcept {
  const auto milliseconds =
      static_cast<std::uint64_t>(std::max<duration::rep>(4, ttl / std::chrono::milliseconds(1)));
  const auto width = static_cast<std::size_t>(std::bit_width(milliseconds));
  return std::min(classes - 1, width * 4 + ((milliseconds >> (width - 3)) & 3U));
}

duration ttl_census::least_of(std::size_t index) noexcept {
  const std::uint64_t milliseconds = (4 + index % 4) << (index / 4 - 3);
  return std::chrono::milliseconds(milliseconds);
}

void ttl_census::add(duration ttl) noexcept {
  const std::size_t index = class_of(ttl);
  ++counts_[index];
  ++all_;
  if (index >= lowest_) return;
  lowest_ = index;
  shortest_.store(least_of(index).count(), std::memory_order_relaxed);
}

void ttl_census::remove(duration ttl) noexcept {
  const std::size_t index = class_of(ttl);
  --all_;
  if (--counts_[index] > 0 || index != lowest_) return;
  if (all_ == 0) lowest_ = classes;  // the usual case: no search
  while (lowest_ < classes && counts_[lowest_] == 0) ++lowest_;
  const duration least = lowest_ < classes ? least_of(lowest_) : duration::max();
  shortest_.store(least.count(), std::memory_order_relaxed);
}

// --- the window --------------------------------------------------------------------------------

attempt_window::attempt_window(std::shared_ptr<agenda> schedule, const ttl_census& census,
                               const limits& limit)
    : agenda_(std::move(schedule)),
      census_(census),
      limit_(limit),
      window_(static_cast<double>(limit.window_first)) {}

// There and back, without a queue.
duration attempt_window::way() const noexcept {
  const duration fastest = std::min(fastest_, fastest_before_);
  return fastest == duration::max() ? duration{0} : fastest;
}

// How long an answer may take: a quarter of what is left of the deadline after the way there and
// back.
duration attempt_window::target() const noexcept {
  const duration deadline = command_limit(limit_, census_.shortest());
  const duration base = std::min(way(), deadline);
  return std::max(shortest_period, base + (deadline - base) / 4);
}

bool attempt_window::room(precedence rank, time_point now) const noexcept {
  if (in_flight() >= static_cast<std::size_t>(window_)) return false;
  return rank != precedence::fresh || (now >= fresh_not_before_ && !overdue(now));
}

// Renewals take too long. Not if one of several servers is silent: it must not hold up the others.
bool attempt_window::overdue(time_point now) const noexcept {
  return !one_silent_ && !many_since_.empty() && now - *many_since_.begin() > target();
}

// How fast the engine was says little after a time without answers.
void attempt_window::start_over_after_rest(time_point now) noexcept {
  if (in_flight() > 0 || since(worked_at_, now) < rest_counts_from) return;
  window_ = std::min(window_, static_cast<double>(limit_.window_first));
  doubling_ = true;
}

attempt_window::slot attempt_window::enter(const std::shared_ptr<window_item>& who, precedence rank,
                                           time_point now) {
  mutex_lock lock(mutex_);
  roll(now);
  start_over_after_rest(now);
  const bool first = waiting_.empty() || waiting_.begin()->first.first > rank;
  // While another thread admits one, a newcomer must not overtake it.
  if (first && !pumping_ && room(rank, now)) {
    ++current_;
    return period_;
  }
  if (stopped_) return 0;
  who->place_ = {rank, next_place_++};
  waiting_.emplace(who->place_, who);
  pump(lock, now);
  return 0;
}

void attempt_window::withdraw(window_item& who) noexcept {
  std::shared_ptr<window_item> dropped;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  if (who.place_.second == 0) return;
  const auto found = waiting_.find(std::exchange(who.place_, {}));
  if (found == waiting_.end()) return;
  dropped = std::move(found->second);
  waiting_.erase(found);
}

void attempt_window::drop(slot taken) noexcept {
  if (taken == period_) {
    --current_;
  } else if (taken + 1 == period_) {
    --previous_;
  }
}

// What was sent before the period that just ended no longer counts: the engine is too slow for so
// many, or silent.
void attempt_window::roll(time_point now) {
  const duration span = target();
  const duration age = since(period_began_, now);
  if (age < span) return;
  const bool both = age / 2 >= span;
  const std::size_t overdue = previous_ + (both ? current_ : 0);
  if (overdue > 0) {
    if (since(last_answer_, now) > span) last_silence_ = now;
    shrink(period_began_, now);
  }
  previous_ = both ? 0 : current_;
  current_ = 0;
  period_ += both ? 2 : 1;
  period_began_ = now;
}

// Once for all attempts sent before it was halved. Not if few were in flight: they did not make the
// engine slow.
void attempt_window::shrink(time_point sent_at, time_point now) noexcept {
  if (sent_at < shrunk_at_ || static_cast<double>(in_flight()) < window_ / 2) return;
  shrunk_at_ = now;
  doubling_ = false;
  window_ = std::max(static_cast<double>(limit_.window_least), window_ / 2);
}

void attempt_window::note(duration took, time_point now) noexcept {
  if (since(fastest_since_, now) >= fastest_counts_for) {
    fastest_before_ = std::exchange(fastest_, duration::max());
    fastest_since_ = now;
  }
  fastest_ = std::min(fastest_, took);
  usual_ += (took - usual_) / 8;
}

void attempt_window::measure(time_point sent_at, time_point now) noexcept {
  ++answers_;
  worked_at_ = now;
  const time_point before = std::exchange(counted_at_, now);
  if (renewals_under_way_ > 0 || sent_at > before) return;
  each_costs_ += (now - before - each_costs_) / 128;
}

void attempt_window::answered(slot taken, time_point sent_at, time_point now, bool usable) {
  mutex_lock lock(mutex_);
  measure(sent_at, now);
  const duration took = now - sent_at;
  if (usable) note(took, now);
  (usable ? last_answer_ : last_silence_) = now;
  const bool full =
      !waiting_.empty() || static_cast<double>(in_flight()) >= window_ - 1;  // it was the limit
  if (took > target()) {
    shrink(sent_at, now);
  } else if (usable && full) {
    window_ = std::min(static_cast<double>(limit_.window_most),
                       window_ + (doubling_ ? 1.0 : 1.0 / window_));
  }
  roll(now);
  drop(taken);
  pump(lock, now);
}

void attempt_window::give_back(slot taken, time_point now) {
  mutex_lock lock(mutex_);
  drop(taken);
  pump(lock, now);
}

attempt_window::renewal_start attempt_window::renewing(time_point now, std::size_t claims) {
  const std::lock_guard lock(mutex_);
  ++renewals_under_way_;
  if (claims >= limit_.many_renewals) many_since_.insert(now);
  return {now, answers_};
}

void attempt_window::renewed(const renewal_start& began, time_point now, std::size_t claims,
                             std::size_t unknown) {
  mutex_lock lock(mutex_);
  --renewals_under_way_;
  counted_at_ = std::max(counted_at_, now);
  const duration took = now - began.at;
  if (unknown == 0) {
    note(took, now);
    last_answer_ = now;
  }
  if (took > target()) shrink(began.at, now);
  // A few slow answers have other causes than load; and if only some of many are missing, one
  // server is silent rather than overloaded.
  const bool many = claims >= limit_.many_renewals;
  const bool one_server = unknown > 0 && unknown < claims / 2;
  if (many) {
    many_since_.erase(many_since_.find(began.at));
    one_silent_ = one_server;
  }
  if (many && !one_server) {
    const auto others = static_cast<duration::rep>(answers_ - began.answers);
    const duration busy = took - way() - each_costs_ * others;
    fresh_not_before_ = std::max(fresh_not_before_, now + std::max(duration{0}, busy));
  }
  pump(lock, now);
}

error attempt_window::reason() const {
  const std::lock_guard lock(mutex_);
  if (last_silence_ > last_answer_) return {errc::unavailable, "the engine does not answer"};
  return {errc::overloaded, "not sent: the engine has as much to do for this client as it answers"};
}

// One thread at a time, in a loop instead of by recursion: an attempt may be answered before its
// call returns. Called with the mutex held, which it releases.
void attempt_window::pump(mutex_lock& lock, time_point now) {
  if (waiting_.empty() || std::exchange(pumping_, true)) return;
  while (!waiting_.empty() && room(waiting_.begin()->first.first, now)) {
    const auto node = waiting_.extract(waiting_.begin());
    node.mapped()->place_ = {};
    ++current_;
    const slot taken = period_;
    const duration usual = usual_;
    lock.unlock();
    node.mapped()->admitted(taken, usual);
    lock.lock();
  }
  pumping_ = false;
  if (waiting_.empty() || stopped_) return;
  const bool held_back = in_flight() < static_cast<std::size_t>(window_);
  const time_point free = overdue(now) ? now + target() : fresh_not_before_;
  const time_point wake = held_back ? free : period_began_ + target();
  lock.unlock();
  agenda_->schedule(shared_from_this(), std::max(wake, now + shortest_period));
}

void attempt_window::due(time_point now) {
  mutex_lock lock(mutex_);
  roll(now);
  pump(lock, now);
}

void attempt_window::stop() noexcept {
  line dropped;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (auto& [place, who] : waiting_) who->place_ = {};
  dropped.swap(waiting_);
}

std::size_t attempt_window::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(window_);
}

std::size_t attempt_window::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

}  // namespace holdfast::core
