#include "stores/zookeeper/session.hpp"

#include "stores/zookeeper/protocol.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace holdfast::zookeeper {

namespace {

constexpr duration least_connect = std::chrono::milliseconds(500);

request make_auth(const server_options& options) {
  request made{opcode::auth, {}};
  jute_writer(made.body).number(0).text("digest").text(options.user + ":" +
                                                       options.password.reveal());
  return made;
}

}  // namespace

session::session(const net::network& net, std::shared_ptr<const server_options> options,
                 duration wanted, std::weak_ptr<session_user> user)
    : reconnecting_connection(net, options->backoff, options->servers.size(),
                              net.reactor->random() % options->servers.size()),
      options_(std::move(options)),
      wanted_(wanted),
      user_(std::move(user)) {}

std::shared_ptr<session> session::make(const net::network& net,
                                       std::shared_ptr<const server_options> options,
                                       duration wanted, std::weak_ptr<session_user> user) {
  return std::shared_ptr<session>(new session(net, std::move(options), wanted, std::move(user)));
}

session::~session() {
  if (!guard_.forked()) close();
}

void session::tell(std::vector<answered_one>& those) {
  for (answered_one& one : those) one.tell();
  those.clear();
}

void session::ask(std::vector<question> batch, const net::patience& until, asker& who,
                  std::int64_t only_in) {
  const auto refuse_all = [&](const error& why) {
    for (std::size_t i = 0; i < batch.size(); ++i) who.answered(i, tl::unexpected(why));
  };
  if (guard_.forked()) return refuse_all({errc::cancelled, "forked from the client's process"});
  const time_point now = net_.reactor->now();
  mutex_lock lock(mutex_);
  const bool full = in_flight_.size() + waiting_.size() + batch.size() > request_limit;
  std::optional<error> refused_for = refusal(until, full, {}, now);
  if (!refused_for && std::ranges::any_of(batch, [](const question& each) {
        return each.what.body.size() > request_size_limit;
      })) {
    refused_for = error{errc::overloaded, "zookeeper: a request that is too large for the server"};
  }
  if (!refused_for && only_in != 0 && only_in != id_) {
    refused_for = error{errc::lost, "the ZooKeeper session has expired"};
  }
  if (refused_for) {
    lock.unlock();
    return refuse_all(*refused_for);
  }
  const bool sends = state_ == state::open;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    pending one{std::move(batch[i]), &who, i, only_in, until, {}};
    if (sends) {
      send(std::move(one), now);
    } else {
      waiting_.push_back(std::move(one));
    }
  }
  watch_deadline(sends ? std::min(until.deadline, now + nudge_after()) : until.first_end());
  if (!sends) return reach(lock, until.at_once, now);
  if (delivering_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return;
  const std::shared_ptr<link> out = link_;
  lock.unlock();
  out->flush();
}

// Called with the mutex held, while open.
void session::send(pending one, time_point now) {
  one.sent = now;
  one.xid = next_xid_;
  next_xid_ = next_xid_ == std::numeric_limits<std::int32_t>::max() ? 1 : next_xid_ + 1;
  if (one.what.watch) watches_.add(one.what.what.what, one.what.watched, one.what.watch);
  link_->queue(framed(one.xid, one.what.what));
  one.writes = one.what.what.writes();
  one.what.what.body.clear();
  in_flight_.push_back(std::move(one));
  last_sent_ = now;
}

// Called with the mutex held, while open.
void session::send_waiting(std::vector<answered_one>& refused, time_point now) {
  for (pending& one : std::exchange(waiting_, {})) {
    if (one.only_in != 0 && one.only_in != id_) {
      refused.push_back({one.who, one.index, failure(errc::lost, "the session has expired")});
    } else {
      send(std::move(one), now);
    }
  }
  if (!in_flight_.empty()) watch_deadline(now + nudge_after());
}

// Called with the mutex held.
std::shared_ptr<link> session::make_link() {
  const greeting mine{last_zxid_, static_cast<std::int32_t>(wanted_ / std::chrono::milliseconds(1)),
                      id_, password_};
  const net::target& next = options_->servers[turn_ % options_->servers.size()];
  return std::make_shared<link>(net_, next, options_, mine, weak_from_this());
}

void session::start_link(link& made) {
  const duration limit = std::min(options_->connect_limit, std::max(least_connect, wanted_ / 3));
  made.start(net_.reactor->now() + limit);
}

// Called with the mutex held.
std::string session::where() const {
  return link_ == nullptr ? "zookeeper" : "zookeeper " + link_->where().text();
}

void session::opened(link& which, const greeting& theirs) {
  const time_point now = net_.reactor->now();
  std::vector<answered_one> refused;
  std::vector<fired> events;
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  const std::int64_t before = id_;
  const bool expired = theirs.session == 0 || theirs.timeout <= 0;
  const bool found_again = theirs.session == id_;
  if (expired) proof_.forget();
  if (expired) {
    id_ = 0;
    password_.clear();
    last_zxid_ = 0;
    const std::shared_ptr<link> gone = std::move(link_);
    lock.unlock();
    gone->close();
    // First the claims that lived by it, then everybody else.
    const auto user = user_.lock();
    if (user != nullptr && before != 0) user->session_ended(before);
    lock.lock();
    if (state_ == state::connecting) connect(lock);
    return;
  }
  id_ = theirs.session;
  password_ = theirs.password;
  timeout_ = std::chrono::milliseconds(theirs.timeout);
  const duration spacing =
      options_->tick > duration{0} ? options_->tick * 6 / 10 : timeout_ * 3 / 10;
  if (found_again) {
    proof_.go_on(which.greeted_at(), now, spacing);
  } else {
    proof_.begin(which.greeted_at(), now, spacing);
  }
  set_open(now);
  pings_.clear();
  if (!options_->user.empty()) link_->queue(framed(auth_xid, make_auth(*options_)));
  watches_.take_all(events);
  send_waiting(refused, now);
  schedule_beat(now);
  lock.unlock();
  delivering_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  tell(refused);
  for (fired& one : events) (*one.who)(one.event);
  delivering_.store({}, std::memory_order_relaxed);
  flush();
}

// What completions asked for goes out together, over the current link, which may be another one.
void session::flush() {
  mutex_lock lock(mutex_);
  if (state_ != state::open) return;
  const std::shared_ptr<link> out = link_;
  lock.unlock();
  out->flush();
}

void session::received(link& which, const std::vector<std::string>& frames) {
  const time_point now = net_.reactor->now();
  std::optional<error> broken;
  // One frame after the other: an event must be reported before the answers that follow it.
  delivering_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  for (const std::string& frame : frames) {
    std::vector<answered_one> finished;
    std::vector<fired> events;
    mutex_lock lock(mutex_);
    if (&which != link_.get()) break;
    take_frame(frame, now, finished, events, broken);
    if (broken) {
      delivering_.store({}, std::memory_order_relaxed);
      return drop_link(lock, *broken, now);
    }
    lock.unlock();
    tell(finished);
    for (fired& one : events) (*one.who)(one.event);
  }
  delivering_.store({}, std::memory_order_relaxed);
  flush();
}

// Called with the mutex held.
void session::take_frame(const std::string& frame, time_point now,
                         std::vector<answered_one>& finished, std::vector<fired>& events,
                         std::optional<error>& broken) {
  jute_reader from(frame);
  const std::int32_t xid = from.number();
  const std::int64_t zxid = from.wide();
  const auto answer = static_cast<code>(from.number());
  if (zxid > 0) last_zxid_ = std::max(last_zxid_, zxid);
  if (xid == event_xid) return watches_.take(read_event(from.rest()), events);
  if (xid == ping_xid) {
    if (pings_.empty()) return;
    proof_.answered(pings_.front(), now, false);
    return pings_.pop_front();
  }
  if (xid == auth_xid) {
    if (answer != code::ok) broken = error{errc::denied, "zookeeper: the login was refused"};
    return;
  }
  if (in_flight_.empty() || in_flight_.front().xid != xid || !from.good()) {
    broken = error{errc::unavailable, "zookeeper: protocol error: a reply to no request"};
    return;
  }
  if (answer == code::session_expired || answer == code::session_moved) {
    broken = error{errc::unavailable, "zookeeper: " + text_of(answer)};
    return;
  }
  pending one = std::move(in_flight_.front());
  in_flight_.pop_front();
  proof_.answered(one.sent, now, one.writes && answer == code::ok);
  const bool unset =
      answer != code::ok && !(one.what.what.what == opcode::exists && answer == code::no_node);
  if (one.what.watch && unset) {
    watches_.drop(one.what.what.what, one.what.watched, one.what.watch);
  }
  if (one.who == nullptr) return;
  finished.push_back({one.who, one.index, reply{answer, std::string(from.rest()), id_, one.sent}});
}

void session::ended(link& which, const error& why) {
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  drop_link(lock, why, net_.reactor->now());
}

// The end of a link, whichever side noticed it. Called with the mutex held, which it releases.
void session::drop_link(mutex_lock& lock, const error& why, time_point now) {
  const std::shared_ptr<link> gone = take_link(why, now);
  std::vector<answered_one> unanswered;
  for (pending& one : std::exchange(in_flight_, {})) {
    if (one.who != nullptr) unanswered.push_back({one.who, one.index, tl::unexpected(why)});
  }
  stores::take_waiting(waiting_, why, unanswered,
                       [&](const pending& one) { return answers(why, one.until); });
  pings_.clear();
  rest_or_idle(now);
  lock.unlock();
  if (gone != nullptr) gone->close();
  tell(unanswered);
}

void session::unwatch(opcode by, const std::string& path, const std::shared_ptr<watcher>& who) {
  const std::scoped_lock lock(mutex_);
  watches_.drop(by, path, who);
}

void session::hold() noexcept { holders_.fetch_add(1); }
void session::unhold() noexcept { holders_.fetch_sub(1); }

duration session::timeout() const {
  const std::scoped_lock lock(mutex_);
  return timeout_;
}

time_point session::proven_until(std::int64_t id) const {
  const std::scoped_lock lock(mutex_);
  if (id != id_ || id == 0 || proof_.date() == time_point::min()) return time_point::min();
  return proof_.date() + timeout_;
}

bool session::open(std::int64_t id) const {
  const std::scoped_lock lock(mutex_);
  return state_ == state::open && id == id_;
}

void session::close(ends when) noexcept {
  if (guard_.forked()) return;
  mutex_lock lock(mutex_);
  const bool says_so = state_ == state::open && when == ends::now;
  if (state_ == state::closed) return;
  const std::shared_ptr<link> gone = set_closed();
  proof_.forget();
  const error why{errc::unavailable, "closed"};
  std::vector<answered_one> unanswered;
  for (auto* those : {&in_flight_, &waiting_}) {
    for (pending& one : std::exchange(*those, {})) {
      if (one.who != nullptr) unanswered.push_back({one.who, one.index, tl::unexpected(why)});
    }
  }
  if (says_so) gone->queue(framed(next_xid_, request{opcode::close_session, {}}));
  net_.reactor->cancel(beat_timer_);
  lock.unlock();
  if (says_so) gone->flush();
  if (gone != nullptr) gone->close();
  tell(unanswered);
}

// Timeouts of requests: each is answered by its deadline, and a connection on which one stays
// unanswered for too long is given up.
void session::check_deadlines() {
  mutex_lock lock(mutex_);
  const time_point now = net_.reactor->now();
  if (!alarm_is_due(now)) return;
  const error late = lateness();
  std::vector<answered_one> expired;
  time_point next = time_point::max();
  stores::take_waiting(waiting_, late, expired, [&](const pending& one) {
    if (one.until.first_end() <= now) return true;
    next = std::min(next, one.until.first_end());
    return false;
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
  if (!pings_.empty()) stalled_at = std::min(stalled_at, pings_.front() + stall_limit());
  next = std::min(next, stalled_at);
  const bool stalled = state_ == state::open && stalled_at <= now;
  std::shared_ptr<link> nudged;
  if (state_ == state::open && !stalled && !in_flight_.empty()) {
    time_point nudge_at = in_flight_.front().sent + nudge_after();
    if (!pings_.empty()) nudge_at = std::max(nudge_at, pings_.back() + nudge_after());
    if (nudge_at <= now) {
      ping(now);
      nudged = link_;
      nudge_at = now + nudge_after();
    }
    next = std::min(next, nudge_at);
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

// ZooKeeper 3.8.0 under load may not process a request until another one comes (`cons` shows it as
// received and not answered): after this time we send one, and then again, since that one may have
// come too early. The connection is given up before there are many.
duration session::nudge_after() const noexcept {
  return std::min<duration>(stall_limit() / 2, std::chrono::milliseconds(50));
}

duration session::stall_limit() const noexcept {
  const duration life = timeout_ > duration{0} ? timeout_ : wanted_;
  return std::clamp<duration>(life / 3, std::chrono::milliseconds(100), std::chrono::seconds(5));
}

// Keeps a session alive and proves that it is: by writes to a node of its own while claims live
// by it, by pings otherwise.

duration session::beat_interval() const noexcept {
  return std::max<duration>(timeout_ / 6, options_->tick * 6 / 10);
}

// Called with the mutex held.
void session::schedule_beat(time_point when) {
  net_.reactor->cancel(beat_timer_);
  beat_timer_ = net_.reactor->at(when, [weak = weak_from_this(), turn = ++beat_turn_] {
    const auto self = weak.lock();
    if (self != nullptr) self->beat(turn);
  });
}

void session::beat(std::uint64_t turn) {
  mutex_lock lock(mutex_);
  if (state_ != state::open || turn != beat_turn_) return;
  const time_point now = net_.reactor->now();
  schedule_beat(now + beat_interval());
  if (held()) {
    if (std::exchange(beating_, true)) return;
    const std::int64_t id = id_;
    const bool made = beating_node_ == id;
    const time_point deadline = now + stall_limit();
    lock.unlock();
    prove(shared_from_this(), id, made, deadline);
    return;
  }
  if (!pings_.empty() || now - last_sent_ < timeout_ / 3) return;
  ping(now);
  watch_deadline(now + stall_limit());
  const std::shared_ptr<link> out = link_;
  lock.unlock();
  out->flush();
}

// Called with the mutex held, while open. Goes out with the next flush.
void session::ping(time_point now) {
  pings_.push_back(now);
  last_sent_ = now;
  link_->queue(framed(ping_xid, request{opcode::ping, {}}));
}

}  // namespace holdfast::zookeeper
