#include "stores/mariadb/connection.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::mariadb {

namespace {

// Trying again at once would be answered alike.
bool definite(const error& why) noexcept {
  return why == errc::denied || why == errc::unsupported || why == errc::invalid;
}

}  // namespace

connection::connection(net::network net, std::shared_ptr<const server_options> options, manner how,
                       events tell)
    : net_(std::move(net)),
      options_(std::move(options)),
      how_(std::move(how)),
      where_(options_->text()),
      tell_(std::move(tell)),
      backoff_(options_->backoff) {}

std::shared_ptr<connection> connection::make(net::network net,
                                             std::shared_ptr<const server_options> options,
                                             manner how, events tell) {
  return std::shared_ptr<connection>(
      new connection(std::move(net), std::move(options), std::move(how), std::move(tell)));
}

connection::~connection() {
  if (!guard_.forked()) close();
}

void connection::send(statement which, const arguments& with, const sql::terms& until,
                      spi::completion<sql::rows> done) {
  send({}, which, with, until, std::move(done));
}

void connection::send(std::string shorter, statement which, const arguments& with,
                      const sql::terms& until, spi::completion<sql::rows> done) {
  if (guard_.forked()) return done(failure(errc::cancelled, "forked from the client's process"));
  call next{which, text_of(which, with, options_->prefix), std::move(done), until};
  next.shorter = std::move(shorter);
  const time_point now = net_.reactor->now();
  next.came = now;
  mutex_lock lock(mutex_);
  if (const auto refused = refusal(next, now)) {
    lock.unlock();
    return next.done(tl::unexpected(*refused));
  }
  watch_deadline(until.first_end());
  const auto others =
      until.ahead
          ? std::ranges::find_if(waiting_, [](const call& each) { return !each.until.ahead; })
          : waiting_.end();
  waiting_.insert(others, std::move(next));
  if (state_ == state::open) return launch();
  if (state_ == state::resting && until.at_once) return connect(lock);
  if (state_ != state::idle) return;
  if (now >= not_before_ || until.at_once) return connect(lock);
  rest_or_idle(now);
}

std::optional<error> connection::refusal(const call& next, time_point now) const {
  const std::string where = where_ + ", " + name_of(next.which);
  if (state_ == state::closed) return error{errc::cancelled, "closed"};
  if (next.until.deadline <= now) return error{errc::unavailable, where + ": no time left", true};
  if (waiting_.size() >= call_limit) {
    return error{errc::overloaded, where + ": too many calls wait for the connection"};
  }
  if ((state_ == state::idle || state_ == state::resting) && now < not_before_ && last_failure_ &&
      definite(*last_failure_)) {
    return last_failure_;
  }
  return std::nullopt;
}

// Under the mutex, while open: the next call goes out if none is on its way.
void connection::launch() {
  if (flight_ || waiting_.empty()) return;
  flight_ = std::move(waiting_.front());
  waiting_.pop_front();
  flight_->sent = net_.reactor->now();
  ++flight_->tries;
  // A link that does not take it has ended: it is about to say so, and the call ends with it.
  link_->send(flight_->which, flight_->shorter.empty() ? flight_->text : flight_->shorter);
}

void connection::start() {
  if (guard_.forked()) return;
  mutex_lock lock(mutex_);
  if (std::exchange(started_, true) || state_ != state::idle) return;
  connect(lock);
}

// Releases the mutex.
void connection::connect(mutex_lock& lock) {
  if (rest_timer_ != 0) net_.reactor->cancel(rest_timer_);
  state_ = state::connecting;
  auto made = std::make_shared<link>(net_, options_, weak_from_this(), how_, turn_);
  link_ = made;
  lock.unlock();
  made->start();
}

void connection::rest_or_idle(time_point now) {
  if (!needed()) {
    state_ = state::idle;
    return;
  }
  state_ = state::resting;
  rest_timer_ = net_.reactor->at(std::max(not_before_, now), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    mutex_lock lock(self->mutex_);
    if (self->state_ != state::resting) return;
    if (self->needed()) return self->connect(lock);
    self->state_ = state::idle;
  });
}

void connection::opened(link& which) {
  std::vector<std::weak_ptr<connection>> led;
  {
    const mutex_lock lock(mutex_);
    if (state_ != state::connecting || link_.get() != &which) return;
    state_ = state::open;
    opened_at_ = net_.reactor->now();
    last_failure_.reset();
    launch();
    led = led_;
  }
  for (const auto& each : led) {
    if (const auto other = each.lock()) other->leave(which.place(), "the primary is another one");
  }
  if (tell_.opened) tell_.opened();
}

void connection::received(link& which, answer& given) {
  std::optional<call> answered;
  {
    const mutex_lock lock(mutex_);
    if (link_.get() != &which || !flight_) return;
    answered = std::exchange(flight_, std::nullopt);
    heard_at_ = net_.reactor->now();
    answered->until.worked(heard_at_ - answered->sent);
    bool again = given.retry && answered->done && answered->tries < try_limit;
    if (given.what && !answered->shorter.empty()) {
      again = given.changed == 0 && answered->done;
      given.what = sql::rows{std::to_string(given.number)};
      answered->shorter.clear();
    }
    if (again) {
      answered->until.ahead = true;
      waiting_.push_front(*std::exchange(answered, std::nullopt));
    }
    // Where the link is about to end the next call is for the one after it.
    if (state_ == state::open && !given.last) launch();
  }
  if (answered && answered->done) answered->done(std::move(given.what));
}

void connection::ended(link& which, const error& why) {
  calls those;
  std::shared_ptr<link> over;  // destroyed under no lock
  {
    const mutex_lock lock(mutex_);
    if (state_ == state::closed || link_.get() != &which) return;
    const time_point now = net_.reactor->now();
    failures_ = state_ == state::open ? 0 : failures_ + 1;
    if (state_ == state::open) backoff_.succeeded(now - opened_at_);
    over = std::move(link_);
    last_failure_ = why;
    ++turn_;
    // The next host at once; all of them having failed, a pause.
    const bool all_failed = failures_ % options_->hosts.size() == 0;
    not_before_ = all_failed ? now + backoff_.next(net_.reactor->random()) : now;
    if (flight_) those.push_back(*std::exchange(flight_, std::nullopt));
    if (definite(why) || all_failed) take_waiting(why, those);
    rest_or_idle(now);
  }
  refuse(std::move(those), why);
  if (tell_.ended) tell_.ended(why);
}

// Those that are not to wait for the next link. Under the mutex.
void connection::take_waiting(const error& why, calls& into) {
  std::erase_if(waiting_, [&](call& each) {
    if (!definite(why) && !each.until.takes_failure()) return false;
    into.push_back(std::move(each));
    return true;
  });
}

void connection::refuse(calls those, const error& why) {
  for (call& each : those) {
    if (each.done)
      each.done(tl::unexpected(each.tries > 0 || each.had_link ? why : net::unsent(why)));
  }
}

// Under the mutex.
void connection::watch_deadline(time_point deadline) {
  if (deadline >= alarm_at_) return;
  if (alarm_ != 0) net_.reactor->cancel(alarm_);
  alarm_at_ = deadline;
  alarm_ = net_.reactor->at(deadline, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->check_deadlines();
  });
}

// Under the mutex. A server that is at work is waited for.
time_point connection::end_of(const call& each, time_point now) const noexcept {
  const bool at_work = heard_at_ >= each.came;
  return each.until.deadline <= now && at_work ? each.until.useful_until : each.until.deadline;
}

// Under the mutex. Returns when to look again.
time_point connection::collect_late(time_point now, calls& late) {
  time_point next = time_point::max();
  if (flight_ && flight_->done) {
    const time_point end = end_of(*flight_, now);
    if (end <= now) {
      late.push_back({flight_->which, {}, std::exchange(flight_->done, nullptr), now, {}, 1});
    } else {
      next = end;
    }
  }
  // Whoever makes our tables, or logs us in, is not silent.
  const bool spoken = state_ == state::open || (state_ == state::connecting && link_->spoken());
  std::erase_if(waiting_, [&](call& each) {
    const time_point end = spoken ? end_of(each, now) : each.until.first_end();
    if (end > now) {
      next = std::min(next, end);
      return false;
    }
    each.had_link = state_ == state::open;
    late.push_back(std::move(each));
    return true;
  });
  return next;
}

void connection::check_deadlines() {
  calls late;
  std::shared_ptr<link> silent;
  std::string why = where_ + ": no answer in time";
  {
    const mutex_lock lock(mutex_);
    if (state_ == state::closed) return;
    const time_point now = net_.reactor->now();
    alarm_at_ = time_point::max();
    alarm_ = 0;
    time_point next = collect_late(now, late);
    if (flight_) {
      const duration silence = tell_.silence ? tell_.silence() : silence_limit;
      const time_point limit = std::max(flight_->until.deadline, flight_->sent + silence);
      if (limit <= now) silent = link_;
      next = std::min(next, std::max(limit, now + std::chrono::milliseconds(1)));
    }
    if (state_ == state::connecting) why += std::string(" (") + link_->progress() + ")";
    if (last_failure_ && state_ != state::open) why += "; last: " + last_failure_->detail;
    if (next != time_point::max()) watch_deadline(next);
  }
  refuse(std::move(late), {errc::unavailable, why});
  if (silent != nullptr) {
    ended(*silent, {errc::unavailable, where_ + ": the server is silent"});
    silent->close();
  }
}

void connection::reset() { leave({}, "given up after a call without an answer"); }

void connection::lead(std::weak_ptr<connection> other) {
  const mutex_lock lock(mutex_);
  led_.push_back(std::move(other));
}

// Ends the link that is open, unless it is to `place`.
void connection::leave(const std::string& place, const char* why) {
  std::shared_ptr<link> current;
  {
    const mutex_lock lock(mutex_);
    if (state_ != state::open || link_->place() == place) return;
    current = link_;
  }
  ended(*current, {errc::unavailable, where_ + ": " + why});
  current->close();
}

std::int64_t connection::home() const {
  const mutex_lock lock(mutex_);
  return state_ == state::open ? link_->home() : 0;
}

bool connection::is_open() const {
  const mutex_lock lock(mutex_);
  return state_ == state::open;
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
    if (std::exchange(state_, state::closed) == state::closed) return;
    over = std::move(link_);
    if (flight_) those.push_back(*std::exchange(flight_, std::nullopt));
    std::move(waiting_.begin(), waiting_.end(), std::back_inserter(those));
    waiting_.clear();
    if (alarm_ != 0) net_.reactor->cancel(alarm_);
    if (rest_timer_ != 0) net_.reactor->cancel(rest_timer_);
  }
  if (over != nullptr) over->close();
  refuse(std::move(those), {errc::unavailable, where_ + ": closed"});
}

}  // namespace holdfast::mariadb
