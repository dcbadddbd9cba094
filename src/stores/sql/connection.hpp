// A connection that stays: it connects when it is needed, again and again, and each call waits for
// that, and for the calls before it, as long as its own deadline allows. Calls of all threads share it.
#pragma once

#include "net/connector.hpp"
#include "net/reconnecting_connection.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/terms.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sql {

// Called on the reactor's threads (or from within start()), under no lock, never twice at once for
// one link.
template <class Link>
class link_user {
 public:
  virtual ~link_user() = default;
  virtual void opened(Link& which) = 0;
  // All answers that came with one read, in the order of the calls. `last`: the link ends after them.
  virtual void received(Link& which, std::vector<result<rows>>& answers, bool last) = 0;
  virtual void notified(Link& which, std::string_view payload) = 0;
  // Once, and last; not after close(). denied and unsupported: trying again at once changes nothing.
  virtual void ended(Link& which, const error& why) = 0;
};

// Thread-safe. Completions are called exactly once, by the call's deadline, under no lock; where the
// server is at work and a later answer is of use, by the end of that use.
//
// Link is one life of a connection: a driver of the server. It has
//   server_options, manner     what it is made of, and what for
//   call                       what it sends: call::which, call::with
//   depth                      how many calls it takes before it has answered the first
//   servers(options)           among how many hosts `turn` chooses; 1 where the driver chooses itself
//   start, send, close, home, place, progress, spoken
//
// What must hold:
//  1. in_flight_ has the calls of the current link in the order in which they were sent. One whose
//     deadline has passed stays as a blank, so that its late answer is not taken for another's.
//  2. A link is given up when a call's deadline has passed and nothing at all was answered since it
//     was sent, for at least silence_limit (or what its user says).
//  3. No call to others under the mutex, except link::send, which returns at once.
template <class Link>
class connection final : public link_user<Link>,
                         public net::reconnecting_connection<connection<Link>, Link> {
 public:
  using call = typename Link::call;
  using statement = decltype(call::which);
  using arguments = decltype(call::with);
  using manner = typename Link::manner;
  using options_ptr = std::shared_ptr<const typename Link::server_options>;

  // In flight or waiting; then overloaded.
  static constexpr std::size_t call_limit = 200'000;
  static constexpr duration silence_limit = std::chrono::seconds(1);

  // Told on the reactor's threads.
  struct events {
    std::function<void()> opened;
    std::function<void(std::string_view)> notified;
    std::function<void(const error&)> ended;
    // How long the server may be silent; else silence_limit. Called under the mutex.
    std::function<duration()> silence;
  };

  static std::shared_ptr<connection> make(net::network net, options_ptr options, manner how = {},
                                          events tell = {}) {
    return std::shared_ptr<connection>(
        new connection(std::move(net), std::move(options), std::move(how), std::move(tell)));
  }
  ~connection() override {
    if (!guard_.forked()) close();
  }

  // unavailable: no answer in time, or the link broke; the call may have been executed, unless it was
  // never sent (error::unsent): no link, see patience. denied,
  // unsupported: the server does not let us in. cancelled: closed, or forked. overloaded.
  void send(call what, const terms& until, spi::completion<rows> done);
  void send(statement which, arguments with, const terms& until, spi::completion<rows> done) {
    send(call{which, std::move(with)}, until, std::move(done));
  }

  // Connects, and from now on stays connected without being asked.
  void start();
  [[nodiscard]] bool is_open() const;
  // By which the server knows the link that is open; 0: none is.
  [[nodiscard]] std::int64_t home() const;
  // Why it is not open, if it was tried.
  [[nodiscard]] std::optional<error> last_failure() const;

  // From now on, whenever this one is connected, the other one is not left at another server: a
  // connection that only listens does not notice that its server is not the primary any more.
  void lead(std::weak_ptr<connection> other);

  // Ends the link that is open, if one is: what was sent may have been carried out, and nothing more
  // comes of it.
  void reset() { leave({}, "given up after a call without an answer"); }

  // Afterwards every completion has been called, with unavailable. Not from within a lock that
  // completions take.
  void close() noexcept;

  void opened(Link& which) override;
  void received(Link& which, std::vector<result<rows>>& answers, bool last) override;
  void notified(Link&, std::string_view payload) override {
    if (tell_.notified) tell_.notified(payload);
  }
  void ended(Link& which, const error& why) override;

 private:
  using base = net::reconnecting_connection<connection<Link>, Link>;
  friend base;
  using base::guard_;
  using base::last_failure_;
  using base::link_;
  using base::mutex_;
  using base::net_;
  using base::opened_at_;
  using base::state_;
  using base::turn_;
  using typename base::mutex_lock;
  using typename base::state;

  struct pending {
    call what;
    spi::completion<rows> done;  // empty: answered already, for its deadline
    terms until;
    time_point since;      // it came, or the link was opened after that
    time_point sent{};     // or, of the first in flight, since when the server has been at it
    bool on_link = false;  // it was sent, or waited for its turn on an open link
  };
  using calls = std::vector<pending>;

  connection(net::network net, options_ptr options, manner how, events tell)
      : base(std::move(net), options->backoff, Link::servers(*options)),
        options_(std::move(options)),
        how_(std::move(how)),
        where_(options_->text()),
        tell_(std::move(tell)) {}

  std::shared_ptr<Link> make_link() {
    return std::make_shared<Link>(net_, options_, this->weak_from_this(), how_, turn_);
  }
  void start_link(Link& made) { made.start(); }
  [[nodiscard]] bool needed() const noexcept { return started_ || !waiting_.empty(); }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  void check_deadlines();

  void launch(mutex_lock& lock);
  void leave(const std::string& place, const char* why);
  time_point collect_late(time_point now, calls& late);
  [[nodiscard]] time_point end_of(const pending& each, time_point now) const noexcept;
  template <class When>
  void take_waiting(calls& into, When when);
  static void refuse(calls those, const error& why);

  const options_ptr options_;
  const manner how_;
  const std::string where_;
  const events tell_;

  // Guarded by mutex_.
  bool started_ = false;
  std::deque<pending> in_flight_;
  std::deque<pending> waiting_;  // those ahead of others first
  time_point heard_at_{};
  std::vector<std::weak_ptr<connection>> led_;
};

template <class Link>
void connection<Link>::send(call what, const terms& until, spi::completion<rows> done) {
  if (guard_.forked()) return done(failure(errc::cancelled, "forked from the client's process"));
  const time_point now = net_.reactor->now();
  mutex_lock lock(mutex_);
  const bool full = in_flight_.size() + waiting_.size() >= call_limit;
  if (const auto refused = this->refusal(until, full, name_of(what.which), now)) {
    lock.unlock();
    return done(tl::unexpected(*refused));
  }
  const bool open = state_ == state::open;
  this->watch_deadline(open ? until.deadline : until.first_end());
  const auto others =
      until.ahead
          ? std::ranges::find_if(waiting_, [](const pending& each) { return !each.until.ahead; })
          : waiting_.end();
  waiting_.insert(others, pending{std::move(what), std::move(done), until, now});
  if (open) return launch(lock);
  this->reach(lock, until.at_once, now);
}

// Under the mutex, while open: what the link takes goes out. Releases the mutex where the link breaks.
template <class Link>
void connection<Link>::launch(mutex_lock& lock) {
  while (!waiting_.empty() && in_flight_.size() < Link::depth) {
    pending& next = in_flight_.emplace_back(std::move(waiting_.front()));
    waiting_.pop_front();
    next.sent = net_.reactor->now();
    next.on_link = true;
    if (link_->send(next.what)) continue;
    const std::shared_ptr<Link> broken = link_;
    lock.unlock();
    ended(*broken, {errc::unavailable, where_ + ": connection closed while sending"});
    return broken->close();
  }
}

template <class Link>
void connection<Link>::start() {
  if (guard_.forked()) return;
  mutex_lock lock(mutex_);
  if (std::exchange(started_, true) || state_ != state::idle) return;
  this->connect(lock);
}

template <class Link>
void connection<Link>::opened(Link& which) {
  calls late;
  std::vector<std::weak_ptr<connection>> led;
  {
    mutex_lock lock(mutex_);
    if (state_ != state::connecting || link_.get() != &which) return;
    const time_point now = net_.reactor->now();
    this->set_open(now);
    led = led_;
    take_waiting(late, [now](const pending& each) { return each.until.deadline <= now; });
    for (pending& each : waiting_) each.since = now;
    launch(lock);
  }
  refuse(std::move(late), {errc::unavailable, where_ + ": connected too late"});
  for (const auto& each : led) {
    if (const auto other = each.lock()) other->leave(which.place(), "the primary is another one");
  }
  if (tell_.opened) tell_.opened();
}

template <class Link>
void connection<Link>::received(Link& which, std::vector<result<rows>>& answers, bool last) {
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
    // The server is at work: the next in line has been waiting for it, not for silence.
    if (!in_flight_.empty()) in_flight_.front().sent = heard_at_;
    // Where the link is about to end the next call is for the one after it.
    if (state_ == state::open && !last) launch(lock);
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i]) asked[i](std::move(answers[i]));
  }
}

template <class Link>
void connection<Link>::ended(Link& which, const error& why) {
  calls those;
  std::shared_ptr<Link> over;  // destroyed under no lock
  {
    const mutex_lock lock(mutex_);
    if (state_ == state::closed || link_.get() != &which) return;
    const time_point now = net_.reactor->now();
    over = this->take_link(why, now);
    std::ranges::move(in_flight_, std::back_inserter(those));
    in_flight_.clear();
    take_waiting(those, [&](const pending& each) { return this->answers(why, each.until); });
    for (const pending& each : waiting_) this->watch_deadline(each.until.first_end());
    this->rest_or_idle(now);
  }
  refuse(std::move(those), why);
  if (tell_.ended) tell_.ended(why);
}

// Under the mutex.
template <class Link>
template <class When>
void connection<Link>::take_waiting(calls& into, When when) {
  std::erase_if(waiting_, [&](pending& each) {
    if (!when(each)) return false;
    into.push_back(std::move(each));
    return true;
  });
}

template <class Link>
void connection<Link>::refuse(calls those, const error& why) {
  for (pending& each : those) {
    if (each.done) each.done(tl::unexpected(each.on_link ? why : net::unsent(why)));
  }
}

// Under the mutex. Of one on an open link: a server that is at work is waited for.
template <class Link>
time_point connection<Link>::end_of(const pending& each, time_point now) const noexcept {
  const bool at_work = heard_at_ >= each.since;
  return each.until.deadline <= now && at_work ? each.until.useful_until : each.until.deadline;
}

// Under the mutex. Returns when to look again.
template <class Link>
time_point connection<Link>::collect_late(time_point now, calls& late) {
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
  // A server that makes our tables, or logs us in, is not silent.
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

template <class Link>
void connection<Link>::check_deadlines() {
  calls late;
  std::shared_ptr<Link> silent;
  error why;
  {
    const mutex_lock lock(mutex_);
    const time_point now = net_.reactor->now();
    if (!this->alarm_is_due(now)) return;
    time_point next = collect_late(now, late);
    if (!in_flight_.empty()) {
      const pending& oldest = in_flight_.front();
      const duration silence = tell_.silence ? tell_.silence() : silence_limit;
      const time_point limit = std::max(oldest.until.deadline, oldest.sent + silence);
      if (limit <= now) silent = link_;
      next = std::min(next, std::max(limit, now + std::chrono::milliseconds(1)));
    }
    why = this->lateness();
    this->watch_deadline(next);
  }
  refuse(std::move(late), why);
  if (silent != nullptr) {
    ended(*silent, {errc::unavailable, where_ + ": the server is silent"});
    silent->close();
  }
}

template <class Link>
void connection<Link>::lead(std::weak_ptr<connection> other) {
  const mutex_lock lock(mutex_);
  led_.push_back(std::move(other));
}

// Ends the link that is open, unless it is to `place`.
template <class Link>
void connection<Link>::leave(const std::string& place, const char* why) {
  std::shared_ptr<Link> current;
  {
    const mutex_lock lock(mutex_);
    if (state_ != state::open || link_->place() == place) return;
    current = link_;
  }
  ended(*current, {errc::unavailable, where_ + ": " + why});
  current->close();
}

template <class Link>
bool connection<Link>::is_open() const {
  const mutex_lock lock(mutex_);
  return state_ == state::open;
}

template <class Link>
std::int64_t connection<Link>::home() const {
  const mutex_lock lock(mutex_);
  return state_ == state::open ? link_->home() : 0;
}

template <class Link>
std::optional<error> connection<Link>::last_failure() const {
  const mutex_lock lock(mutex_);
  return last_failure_;
}

template <class Link>
void connection<Link>::close() noexcept {
  if (guard_.forked()) return;
  calls those;
  std::shared_ptr<Link> over;
  {
    const mutex_lock lock(mutex_);
    if (state_ == state::closed) return;
    over = this->set_closed();
    std::ranges::move(in_flight_, std::back_inserter(those));
    in_flight_.clear();
    take_waiting(those, [](const pending&) { return true; });
  }
  if (over != nullptr) over->close();
  refuse(std::move(those), {errc::unavailable, where_ + ": closed"});
}

}  // namespace holdfast::sql
