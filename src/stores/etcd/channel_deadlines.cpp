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

void channel::check_deadlines() {
  mutex_lock lock(mutex_);
  const time_point now = net_.reactor->now();
  if (!alarm_is_due(now)) return;
  const error late = lateness();
  news told;
  time_point next = time_point::max();
  bool stalled = false;
  const error unsent = net::unsent(late);
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
  if (!stalled) watch_deadline(next);
  if (stalled && link_ != nullptr) {
    drop(lock, {errc::unavailable, where() + ": no answer"}, now);
    lock.lock();
    for (const pending& one : waiting_) watch_deadline(one.until.first_end());
  } else if (link_ != nullptr) {
    for (const std::int32_t each : given_up) {
      in_flight_.erase(each);
      link_->reset(each);
    }
  }
  lock.unlock();
  flush();
  tell(told);
}

}  // namespace holdfast::etcd
