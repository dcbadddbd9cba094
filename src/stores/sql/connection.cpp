#include "stores/sql/connection.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::sql {

void connection::send(call what, const terms& until, spi::completion<rows> done) {
  if (guard_.forked()) return done(failure(errc::cancelled, "forked from the client's process"));
  const time_point now = net_.reactor->now();
  mutex_lock lock(mutex_);
  const bool full = in_flight_.size() + waiting_.size() >= call_limit;
  if (const auto refused = refusal(until, full, name_of(what.which), now)) {
    lock.unlock();
    return done(tl::unexpected(*refused));
  }
  const bool open = state_ == state::open;
  watch_deadline(open ? until.deadline : until.first_end());
  const auto others =
      until.ahead
          ? std::ranges::find_if(waiting_, [](const pending& each) { return !each.until.ahead; })
          : waiting_.end();
  waiting_.insert(others, pending{std::move(what), std::move(done), until, now});
  if (open) return launch(lock);
  reach(lock, until.at_once, now);
}

// Under the mutex, while open: sends what the link takes. Releases the mutex if the link breaks.
void connection::launch(mutex_lock& lock) {
  while (!waiting_.empty() && in_flight_.size() < links_.depth) {
    pending& next = in_flight_.emplace_back(std::move(waiting_.front()));
    waiting_.pop_front();
    next.sent = net_.reactor->now();
    next.on_link = true;
    if (link_->send(next.what)) continue;
    const std::shared_ptr<link> broken = link_;
    lock.unlock();
    ended(*broken, {errc::unavailable, links_.where + ": connection closed while sending"});
    return broken->close();
  }
}

void connection::start() {
  if (guard_.forked()) return;
  mutex_lock lock(mutex_);
  if (std::exchange(started_, true) || state_ != state::idle) return;
  connect(lock);
}

void connection::opened(link& which) {
  calls late;
  std::vector<std::weak_ptr<connection>> led;
  {
    mutex_lock lock(mutex_);
    if (state_ != state::connecting || link_.get() != &which) return;
    const time_point now = net_.reactor->now();
    set_open(now);
    led = led_;
    take_waiting(late, [now](const pending& each) { return each.until.deadline <= now; });
    for (pending& each : waiting_) each.since = now;
    launch(lock);
  }
  refuse(std::move(late), {errc::unavailable, links_.where + ": connected too late"});
  for (const auto& each : led) {
    if (const auto other = each.lock()) other->leave(which.place(), "the primary is another one");
  }
  if (tell_.opened) tell_.opened();
}

void connection::received(link& which, std::vector<result<rows>>& answers, bool last) {
  std::vector<spi::completion<rows>> asked;
  asked.reserve(answers.size());
  {
    mutex_lock lock(mutex_);
    if (link_.get() != &which) return;
    heard_at_ = net_.reactor->now();
    for (std::size_t i = 0; i < answers.size() && !in_flight_.empty(); ++i) {
      pending& first = in_flight_.front();
      if (i == 0) first.until.worked(heard_at_ - first.sent);
      asked.push_back(std::move(first.done));
      in_flight_.pop_front();
    }
    // The server is working: the next call has been waiting for that, and not met silence.
    if (!in_flight_.empty()) in_flight_.front().sent = heard_at_;
    // If the link is about to end, the next call is for its successor.
    if (state_ == state::open && !last) launch(lock);
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i]) asked[i](std::move(answers[i]));
  }
}

void connection::ended(link& which, const error& why) {
  calls those;
  std::shared_ptr<link> over;  // destroyed under no lock
  {
    const mutex_lock lock(mutex_);
    if (state_ == state::closed || link_.get() != &which) return;
    const time_point now = net_.reactor->now();
    over = take_link(why, now);
    std::ranges::move(in_flight_, std::back_inserter(those));
    in_flight_.clear();
    take_waiting(those, [&](const pending& each) { return answers(why, each.until); });
    for (const pending& each : waiting_) watch_deadline(each.until.first_end());
    rest_or_idle(now);
  }
  refuse(std::move(those), why);
  if (tell_.ended) tell_.ended(why);
}

// Under the mutex.
template <class When>
void connection::take_waiting(calls& into, When when) {
  std::erase_if(waiting_, [&](pending& each) {
    if (!when(each)) return false;
    into.push_back(std::move(each));
    return true;
  });
}

void connection::refuse(calls those, const error& why) {
  for (pending& each : those) {
    if (each.done) each.done(tl::unexpected(each.on_link ? why : net::unsent(why)));
  }
}

// Under the mutex. For a call on an open link: a server that is working is waited for.
time_point connection::end_of(const pending& each, time_point now) const noexcept {
  const bool at_work = heard_at_ >= each.since;
  return each.until.deadline <= now && at_work ? each.until.useful_until : each.until.deadline;
}

// Under the mutex. Returns when to look again.
time_point connection::collect_late(time_point now, calls& late) {
  time_point next = time_point::max();
  for (pending& each : in_flight_) {
    if (!each.done) continue;
    const time_point end = end_of(each, now);
    if (end > now) {
      next = std::min(next, end);
      continue;
    }
    late.push_back(pending{{}, std::exchange(each.done, nullptr), each.until, now, now, true});
  }
  // A server that is creating our tables, or logging us in, is not silent.
  const bool spoken = state_ == state::connecting && link_->spoken();
  const bool open = state_ == state::open;
  take_waiting(late, [&](pending& each) {
    const time_point end =
        open ? end_of(each, now) : (spoken ? each.until.deadline : each.until.first_end());
    if (end > now) {
      next = std::min(next, end);
      return false;
    }
    each.on_link = open;
    return true;
  });
  return next;
}

void connection::check_deadlines() {
  calls late;
  std::shared_ptr<link> silent;
  error why;
  {
    const mutex_lock lock(mutex_);
    const time_point now = net_.reactor->now();
    if (!alarm_is_due(now)) return;
    time_point next = collect_late(now, late);
    if (!in_flight_.empty()) {
      const pending& oldest = in_flight_.front();
      const duration silence = tell_.silence ? tell_.silence() : silence_limit;
      const time_point limit = std::max(oldest.until.deadline, oldest.sent + silence);
      if (limit <= now) silent = link_;
      next = std::min(next, std::max(limit, now + std::chrono::milliseconds(1)));
    }
    why = lateness();
    watch_deadline(next);
  }
  refuse(std::move(late), why);
  if (silent != nullptr) {
    ended(*silent, {errc::unavailable, links_.where + ": the server is silent"});
    silent->close();
  }
}

void connection::lead(std::weak_ptr<connection> other) {
  const mutex_lock lock(mutex_);
  led_.push_back(std::move(other));
}

// Ends the open link, unless it goes to `place`.
void connection::leave(const std::string& place, const char* why) {
  std::shared_ptr<link> current;
  {
    const mutex_lock lock(mutex_);
    if (state_ != state::open || link_->place() == place) return;
    current = link_;
  }
  ended(*current, {errc::unavailable, links_.where + ": " + why});
  current->close();
}

bool connection::is_open() const {
  const mutex_lock lock(mutex_);
  return state_ == state::open;
}

std::int64_t connection::home() const {
  const mutex_lock lock(mutex_);
  return state_ == state::open ? link_->home() : 0;
}

std::optional<error> connection::last_failure() const {
  const mutex_lock lock(mutex_);
  return last_failure_;
}

void connection::close() noexcept {
  if (guard_.forked()) return;
  calls those;
  std::shared_ptr<link> over;
  {
    const mutex_lock lock(mutex_);
    if (state_ == state::closed) return;
    over = set_closed();
    std::ranges::move(in_flight_, std::back_inserter(those));
    in_flight_.clear();
    take_waiting(those, [](const pending&) { return true; });
  }
  if (over != nullptr) over->close();
  refuse(std::move(those), {errc::unavailable, links_.where + ": closed"});
}

}  // namespace holdfast::sql
