// What time does to requests: each is answered by its deadline, and a connection on which one stays
// unanswered for too long is given up.
#include "stores/zookeeper/session.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::zookeeper {

void session::check_deadlines() {
  mutex_lock lock(mutex_);
  const time_point now = net_.reactor->now();
  if (!alarm_is_due(now)) return;
  const error late = lateness();
  std::vector<answered_one> expired;
  time_point next = time_point::max();
  const error unsent = net::unsent(late);
  std::erase_if(waiting_, [&](pending& one) {
    if (one.until.first_end() > now) {
      next = std::min(next, one.until.first_end());
      return false;
    }
    expired.push_back({one.who, one.index, tl::unexpected(unsent)});
    return true;
  });
  for (pending& one : in_flight_) {
    if (one.who == nullptr) continue;
    if (one.until.deadline > now) {
      next = std::min(next, one.until.deadline);
    } else {
      expired.push_back({std::exchange(one.who, nullptr), one.index, tl::unexpected(late)});
    }
  }
  time_point stalled_at = time_point::max();
  if (!in_flight_.empty()) stalled_at = in_flight_.front().sent + stall_limit();
  if (ping_sent_) stalled_at = std::min(stalled_at, *ping_sent_ + stall_limit());
  next = std::min(next, stalled_at);
  const bool stalled = state_ == state::open && stalled_at <= now;
  std::shared_ptr<link> nudged;
  if (state_ == state::open && !stalled && !in_flight_.empty()) {
    const time_point nudge_at = in_flight_.front().sent + nudge_after();
    if (nudge_at <= now && !ping_sent_) {
      ping(now);
      nudged = link_;
    }
    next = std::min(next, nudge_at > now ? nudge_at : now + nudge_after());
  }
  if (!stalled) watch_deadline(next);
  if (stalled) {
    drop_link(lock, {errc::unavailable, where() + ": no answer"}, now);
    lock.lock();
    for (const pending& one : waiting_) watch_deadline(one.until.first_end());
  }
  lock.unlock();
  if (nudged != nullptr) nudged->flush();
  tell(expired);
}

// ZooKeeper 3.8.0 under load may leave a request lying until another one comes (`cons` shows it as received
// and not answered): after this time one comes.
duration session::nudge_after() const noexcept {
  return std::min<duration>(stall_limit() / 2, std::chrono::milliseconds(50));
}

duration session::stall_limit() const noexcept {
  const duration life = timeout_ > duration{0} ? timeout_ : wanted_;
  return std::clamp<duration>(life / 3, std::chrono::milliseconds(100), std::chrono::seconds(5));
}

}  // namespace holdfast::zookeeper
