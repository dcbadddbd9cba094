// Streams of a channel, and the timeouts of its calls.
#include "stores/etcd/channel.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

// Streams of messages both ways, which live as long as their connection.

// Called with the mutex held, while open.
void channel::begin_stream(listening& one) {
  if (retiring_) return;
  one.stream =
      link_->begin(path_of(one.what), one.unsent.front(), http2_connection::kind::stream, token_);
  if (one.stream == 0) return retire();
  const std::vector<std::string> messages = std::exchange(one.unsent, {});
  for (std::size_t i = 1; i < messages.size(); ++i) link_->send(one.stream, messages[i]);
}

std::uint64_t channel::open_stream(method what, std::string first,
                                   std::weak_ptr<stream_listener> who) {
  mutex_lock lock(mutex_);
  if (state_ == state::closed || guard_.forked()) return 0;
  const std::uint64_t id = next_stream_++;
  listening& made = streams_[id];
  made.what = what;
  made.unsent.push_back(std::move(first));
  made.who = std::move(who);
  if (state_ == state::idle) {
    // Posted: a connection that is refused at once would be reported within this call.
    net_.reactor->post([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      mutex_lock again(self->mutex_);
      if (self->state_ == state::idle && !self->streams_.empty()) self->connect(again);
    });
  } else if (state_ == state::open) {
    begin_stream(made);
    const std::shared_ptr<http2_connection> out = link_;
    lock.unlock();
    out->flush();
  }
  return id;
}

void channel::send(std::uint64_t stream, const std::string& message) {
  mutex_lock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  if (found->second.stream == 0) {
    found->second.unsent.push_back(message);
    return;
  }
  link_->send(found->second.stream, message);
  const std::shared_ptr<http2_connection> out = link_;
  lock.unlock();
  out->flush();
}

void channel::abandon(std::uint64_t stream, credentials how) {
  mutex_lock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  if (found->second.stream != 0) link_->reset(found->second.stream);
  streams_.erase(found);
  if (how == credentials::new_token && state_ == state::open && !options_->user.empty()) {
    log_in(net_.reactor->now());
  }
  lock.unlock();
  flush();
}

// Timeouts of calls: each is answered by its deadline, and a member is given up if it leaves a call
// unanswered for too long and has answered no later one.

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
  stores::take_waiting(waiting_, late, told.answers, [&](const pending& one) {
    if (one.until.first_end() <= now) return true;
    next = std::min(next, one.until.first_end());
    return false;
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
