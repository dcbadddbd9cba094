// What time does to calls: each is answered by its deadline, and a member on which one stays unanswered
// for too long, and none after it was answered, is given up.
#include "stores/etcd/channel.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

namespace {

// A call that is given up earlier says nothing about the member.
constexpr duration least_stall = std::chrono::milliseconds(500);

}  // namespace

// Called with the mutex held.
error channel::not_connected() const {
  std::string text = "etcd";
  if (link_ != nullptr) text += " " + link_->where().text();
  text += ": not connected in time";
  if (last_failure_) text += " (last: " + last_failure_->detail + ")";
  return {errc::unavailable, std::move(text)};
}

// Called with the mutex held. One timer for all: it is set again only for an earlier time.
void channel::watch_deadline(time_point deadline) {
  if (deadline >= alarm_at_) return;
  net_.reactor->cancel(alarm_);
  alarm_at_ = deadline;
  alarm_ = net_.reactor->at(deadline, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_alarm();
  });
}

void channel::on_alarm() {
  mutex_lock lock(mutex_);
  const time_point now = net_.reactor->now();
  if (state_ == state::closed || now < alarm_at_) return;
  alarm_at_ = time_point::max();
  const error late{errc::unavailable,
                   "etcd: no answer in time" +
                       (last_failure_ ? " (" + last_failure_->detail + ")" : std::string())};
  news told;
  time_point next = time_point::max();
  bool stalled = false;
  const error unsent = net::unsent(not_connected());
  std::erase_if(waiting_, [&](pending& one) {
    if (one.until.first_end() > now) {
      next = std::min(next, one.until.first_end());
      return false;
    }
    told.answers.push_back({one.who, one.index, tl::unexpected(unsent)});
    return true;
  });
  std::vector<std::int32_t> given_up;
  for (auto& [stream, one] : in_flight_) {
    const duration patience =
        std::min(options_->stall_limit, std::max(one.until.deadline - one.sent, least_stall));
    const bool too_long = one.sent + patience <= now;
    if (one.who != nullptr && one.until.deadline <= now) {
      told.answers.push_back({std::exchange(one.who, nullptr), one.index, tl::unexpected(late)});
    }
    if (one.who != nullptr) next = std::min(next, one.until.deadline);
    if (!too_long) {
      next = std::min(next, one.sent + patience);
    } else if (one.sent > last_answered_sent_) {
      stalled = true;
    } else if (one.who == nullptr) {
      given_up.push_back(stream);
    }
  }
  if (state_ == state::login) {
    const time_point limit = opened_at_ + options_->stall_limit;
    stalled = stalled || limit <= now;
    next = std::min(next, limit);
  }
  if (retiring_ && in_flight_.empty()) stalled = true;
  if (next != time_point::max() && !stalled) watch_deadline(next);
  if (stalled && link_ != nullptr) {
    drop(lock, {errc::unavailable, "etcd " + link_->where().text() + ": no answer"}, now);
    if (!lock.owns_lock()) lock.lock();
    for (const pending& one : waiting_) watch_deadline(one.until.first_end());
  } else if (link_ != nullptr) {
    for (const std::int32_t each : given_up) {
      in_flight_.erase(each);
      link_->reset(each);
    }
  }
  if (lock.owns_lock()) lock.unlock();
  flush();
  tell(told);
}

}  // namespace holdfast::etcd
