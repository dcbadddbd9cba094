#include "stores/postgresql/connection.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::postgresql {

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

void connection::send(statement which, arguments with, const sql::terms& until,
                      spi::completion<sql::rows> done) {
  if (guard_.forked()) return done(failure(errc::cancelled, "forked from the client's process"));
  const time_point now = net_.reactor->now();
  pending rest{std::move(done), until, now};
  mutex_lock lock(mutex_);
  if (state_ != state::open || until.deadline <= now) {
    return send_later(lock, {which, std::move(with), std::move(rest)}, now);
  }
  if (in_flight_.size() >= call_limit) {
    lock.unlock();
    return rest.done(failure(errc::overloaded, where_ + ": too many calls at once"));
  }
  if (!link_->send(which, with)) {
    const std::shared_ptr<link> broken = link_;
    lock.unlock();
    ended(*broken, {errc::unavailable, where_ + ": connection closed while sending"});
    broken->close();
    return rest.done(failure(errc::unavailable, where_ + ": connection closed while sending"));
  }
  rest.on_link = true;
  in_flight_.push_back(std::move(rest));
  watch_deadline(until.deadline);
}

// The way of a call that finds no open link. Called with the mutex held, which it releases.
void connection::send_later(mutex_lock& lock, waiting call, time_point now) {
  const std::string where = where_ + ", " + name_of(call.which);
  std::optional<error> refusal;
  if (state_ == state::closed) {
    refusal = error{errc::cancelled, "closed"};
  } else if (call.rest.until.deadline <= now) {
    refusal = error{errc::unavailable, where + ": no time left", true};
  } else if (waiting_.size() >= call_limit) {
    refusal = error{errc::overloaded, where + ": too many calls wait for a connection"};
  } else if ((state_ == state::idle || state_ == state::resting) && now < not_before_ &&
             last_failure_ && definite(*last_failure_)) {
    refusal = last_failure_;
  }
  if (refusal) {
    lock.unlock();
    return call.rest.done(tl::unexpected(*refusal));
  }
  watch_deadline(call.rest.until.first_end());
  const bool at_once = call.rest.until.at_once;
  waiting_.push_back(std::move(call));
  if (state_ == state::resting && at_once) return connect(lock);
  if (state_ != state::idle) return;
  if (now >= not_before_ || at_once) return connect(lock);
  rest_or_idle(now);
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
  std::vector<pending> late;
  std::vector<std::weak_ptr<connection>> led;
  {
    const mutex_lock lock(mutex_);
    if (state_ != state::connecting || link_.get() != &which) return;
    state_ = state::open;
    opened_at_ = net_.reactor->now();
    last_failure_.reset();
    led = led_;
    for (; !waiting_.empty(); waiting_.pop_front()) {
      waiting& next = waiting_.front();
      next.rest.sent = opened_at_;
      const bool in_time = next.rest.until.deadline > opened_at_;
      next.rest.on_link = in_time;
      if (!in_time || !link_->send(next.which, next.with)) {
        late.push_back(std::move(next.rest));
      } else {
        in_flight_.push_back(std::move(next.rest));
      }
    }
  }
  refuse(std::move(late), {errc::unavailable, where_ + ": connected too late"});
  for (const auto& each : led) {
    if (const auto other = each.lock()) other->leave(which.place(), "the primary is another one");
  }
  if (tell_.opened) tell_.opened();
}

void connection::received(link& which, std::vector<result<sql::rows>>& answers) {
  std::vector<spi::completion<sql::rows>> asked;
  asked.reserve(answers.size());
  {
    const mutex_lock lock(mutex_);
    if (link_.get() != &which) return;
    heard_at_ = net_.reactor->now();
    for (std::size_t i = 0; i < answers.size() && !in_flight_.empty(); ++i) {
      const pending& first = in_flight_.front();
      if (i == 0) first.until.worked(heard_at_ - first.sent);
      asked.push_back(std::move(in_flight_.front().done));
      in_flight_.pop_front();
    }
    // The server is at work: who is next in line has been waiting for it, not for silence.
    if (!in_flight_.empty()) in_flight_.front().sent = heard_at_;
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i]) asked[i](std::move(answers[i]));
  }
}

void connection::notified(link&, std::string_view payload) {
  if (tell_.notified) tell_.notified(payload);
}

void connection::ended(link& which, const error& why) {
  std::vector<pending> those;
  std::shared_ptr<link> over;  // destroyed under no lock
  {
    const mutex_lock lock(mutex_);
    if (state_ == state::closed || link_.get() != &which) return;
    const time_point now = net_.reactor->now();
    if (state_ == state::open) backoff_.succeeded(now - opened_at_);
    over = std::move(link_);
    last_failure_ = why;
    ++turn_;
    not_before_ = now + backoff_.next(net_.reactor->random());
    std::move(in_flight_.begin(), in_flight_.end(), std::back_inserter(those));
    in_flight_.clear();
    take_waiting(why, those);
    rest_or_idle(now);
  }
  refuse(std::move(those), why);
  if (tell_.ended) tell_.ended(why);
}

// Those that are not to wait for the next link. Under the mutex.
void connection::take_waiting(const error& why, std::vector<pending>& into) {
  std::erase_if(waiting_, [&](waiting& each) {
    if (!definite(why) && !each.rest.until.takes_failure()) return false;
    into.push_back(std::move(each.rest));
    return true;
  });
}

void connection::refuse(std::vector<pending> those, const error& why) {
  for (pending& each : those) {
    if (each.done) each.done(tl::unexpected(each.on_link ? why : net::unsent(why)));
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

// Under the mutex. Of one that was sent: a server that is at work is waited for.
time_point connection::end_of(const pending& call, time_point now) const noexcept {
  const bool at_work = heard_at_ >= call.sent;
  return call.until.deadline <= now && at_work ? call.until.useful_until : call.until.deadline;
}

void connection::check_deadlines() {
  std::vector<pending> late;
  std::shared_ptr<link> silent;
  std::string why = where_ + ": no answer in time";
  {
    const mutex_lock lock(mutex_);
    if (state_ == state::closed) return;
    const time_point now = net_.reactor->now();
    alarm_at_ = time_point::max();
    alarm_ = 0;
    time_point next = time_point::max();
    for (pending& each : in_flight_) {
      if (!each.done) continue;
      const time_point end = end_of(each, now);
      if (end <= now) {
        late.push_back({std::exchange(each.done, nullptr), each.until, each.sent, true});
      } else {
        next = std::min(next, end);
      }
    }
    // Whoever makes our tables, or logs us in, is not silent.
    const bool spoken = state_ == state::connecting && link_->spoken();
    std::erase_if(waiting_, [&](waiting& each) {
      const time_point end = spoken ? each.rest.until.deadline : each.rest.until.first_end();
      if (end > now) {
        next = std::min(next, end);
        return false;
      }
      late.push_back(std::move(each.rest));
      return true;
    });
    if (!in_flight_.empty()) {
      const pending& oldest = in_flight_.front();
      const duration silence = tell_.silence ? tell_.silence() : silence_limit;
      const time_point limit = std::max(oldest.until.deadline, oldest.sent + silence);
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

bool connection::is_open() const {
  const mutex_lock lock(mutex_);
  return state_ == state::open;
}

int connection::home() const {
  const mutex_lock lock(mutex_);
  return state_ == state::open ? link_->home() : 0;
}

std::optional<error> connection::last_failure() const {
  const mutex_lock lock(mutex_);
  return last_failure_;
}

void connection::close() noexcept {
  if (guard_.forked()) return;
  std::vector<pending> those;
  std::shared_ptr<link> over;
  {
    const mutex_lock lock(mutex_);
    if (std::exchange(state_, state::closed) == state::closed) return;
    over = std::move(link_);
    std::move(in_flight_.begin(), in_flight_.end(), std::back_inserter(those));
    in_flight_.clear();
    for (waiting& each : waiting_) those.push_back(std::move(each.rest));
    waiting_.clear();
    if (alarm_ != 0) net_.reactor->cancel(alarm_);
    if (rest_timer_ != 0) net_.reactor->cancel(rest_timer_);
  }
  if (over != nullptr) over->close();
  refuse(std::move(those), {errc::unavailable, where_ + ": closed"});
}

}  // namespace holdfast::postgresql
