// What all connections to a server have in common: a link that is made again whenever it is needed,
// the pause between attempts, why the last attempt failed, and one timer for all deadlines. Each
// engine adds what it sends and how it waits.
#pragma once

#include "net/backoff.hpp"
#include "net/connector.hpp"
#include "net/patience.hpp"
#include "runtime/fork_guard.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::net {

// Trying again at once would give the same answer.
[[nodiscard]] inline bool definite(const error& why) noexcept {
  return why == errc::denied || why == errc::unsupported || why == errc::invalid;
}

//   state       means                             changes to
//   idle        no link, and nothing needs one    connecting: a call comes; resting: too soon
//   connecting  a link is being made              login, open; resting or idle: it failed
//   login       etcd: made, and not yet let in    open; resting or idle: it failed
//   open        calls go out                      resting or idle: the link ended
//   resting     the pause after a failure         connecting
//   closed      for good                          -
//
// Self derives from this, and has
//   std::shared_ptr<Link> make_link()    and   void start_link(Link&)
//   bool needed() const                  something waits for a link, or is to be kept connected
//   std::string where() const            the server, for messages
//   void check_deadlines()               by the time given to watch_deadline(), under no lock
// All members are guarded by mutex_, and all functions are called with it held.
template <class Self, class Link>
class reconnecting_connection : public std::enable_shared_from_this<Self> {
 public:
  reconnecting_connection(const reconnecting_connection&) = delete;
  reconnecting_connection& operator=(const reconnecting_connection&) = delete;

 protected:
  enum class state : std::uint8_t { idle, connecting, login, open, resting, closed };
  using mutex_lock = std::unique_lock<std::mutex>;

  // `servers`: how many there are; each attempt takes the next one.
  reconnecting_connection(network net, backoff_limits pauses, std::size_t servers,
                          std::size_t first = 0)
      : net_(std::move(net)), servers_(servers), turn_(first), backoff_(pauses) {}
  ~reconnecting_connection() = default;

  // Why a call is neither sent nor kept; none if it is. `full`: too many are kept already.
  [[nodiscard]] std::optional<error> refusal(const patience& until, bool full,
                                             std::string_view operation, time_point now) const {
    const auto because = [&](errc code, const char* why) {
      std::string text = self().where();
      if (!operation.empty()) text.append(", ").append(operation);
      return error{code, std::move(text.append(": ").append(why)), code == errc::unavailable};
    };
    if (state_ == state::closed) return error{errc::cancelled, "closed"};
    if (until.deadline <= now) return because(errc::unavailable, "no time left");
    if (full) return because(errc::overloaded, "too many calls at once");
    const bool down = state_ == state::idle || state_ == state::resting;
    if (down && now < not_before_ && last_failure_ && definite(*last_failure_)) {
      return last_failure_;
    }
    return std::nullopt;
  }

  // For something that waits for a link. Releases the mutex where it connects.
  void reach(mutex_lock& lock, bool at_once, time_point now) {
    if (state_ == state::resting && at_once) return connect(lock);
    if (state_ != state::idle) return;
    if (at_once || now >= not_before_) return connect(lock);
    rest_or_idle(now);
  }

  // Releases the mutex.
  void connect(mutex_lock& lock) {
    net_.reactor->cancel(rest_timer_);
    state_ = state::connecting;
    link_ = self().make_link();
    const std::shared_ptr<Link> made = link_;
    lock.unlock();
    self().start_link(*made);
  }

  void rest_or_idle(time_point now) {
    net_.reactor->cancel(rest_timer_);
    state_ = self().needed() ? state::resting : state::idle;
    if (state_ == state::idle) return;
    rest_timer_ = net_.reactor->at(std::max(not_before_, now), [weak = this->weak_from_this()] {
      const std::shared_ptr<Self> me = weak.lock();
      if (me == nullptr) return;
      mutex_lock lock(me->mutex_);
      if (me->state_ != state::resting) return;
      if (me->needed()) return me->connect(lock);
      me->state_ = state::idle;
    });
  }

  void set_open(time_point now) {
    state_ = state::open;
    opened_at_ = now;
    last_failure_.reset();
  }

  // The link has ended; the caller closes or destroys it once the mutex is free. The next server is
  // tried at once; after all of them have failed, or a link that was in use has ended, there is a
  // pause.
  [[nodiscard]] std::shared_ptr<Link> take_link(const error& why, time_point now) {
    const bool lasted = state_ == state::open && now - opened_at_ > short_life;
    failures_ = lasted ? 0 : failures_ + 1;
    if (lasted) backoff_.succeeded(now - opened_at_);
    last_failure_ = why;
    ++turn_;
    const bool pause = failures_ % servers_ == 0;
    not_before_ = pause ? now + backoff_.next(net_.reactor->random()) : now;
    return std::move(link_);
  }

  // For a call that waits for a link: the failure is its answer.
  [[nodiscard]] bool answers(const error& why, const patience& until) const noexcept {
    const bool all_failed = failures_ > 0 && failures_ % servers_ == 0;
    return definite(why) || (all_failed && until.takes_failure());
  }

  // The error for a call that is out of time.
  [[nodiscard]] error lateness() const {
    if (state_ == state::open) return {errc::unavailable, self().where() + ": no answer in time"};
    std::string reason;
    if constexpr (requires { link_->progress(); }) {
      if (state_ == state::connecting) reason = link_->progress();
    }
    if (last_failure_) reason += (reason.empty() ? "last: " : "; last: ") + last_failure_->detail;
    if (!reason.empty()) reason = " (" + reason + ")";
    return {errc::unavailable, self().where() + ": not connected in time" + reason};
  }

  // One timer for all: it is set again only for an earlier time.
  void watch_deadline(time_point deadline) {
    if (deadline >= alarm_at_) return;
    net_.reactor->cancel(alarm_);
    alarm_at_ = deadline;
    alarm_ = net_.reactor->at(deadline, [weak = this->weak_from_this()] {
      if (const std::shared_ptr<Self> me = weak.lock()) me->check_deadlines();
    });
  }

  // At the beginning of check_deadlines(). False: there is nothing to check.
  [[nodiscard]] bool alarm_is_due(time_point now) {
    if (state_ == state::closed || now < alarm_at_) return false;
    alarm_at_ = time_point::max();
    return true;
  }

  // For good. Returns the link, which the caller closes once the mutex is free.
  [[nodiscard]] std::shared_ptr<Link> set_closed() noexcept {
    state_ = state::closed;
    net_.reactor->cancel(alarm_);
    net_.reactor->cancel(rest_timer_);
    return std::move(link_);
  }

  static constexpr duration short_life = std::chrono::milliseconds(50);  // of a link: a failure

  const runtime::fork_guard guard_;
  const network net_;

  mutable std::mutex mutex_;
  state state_ = state::idle;
  std::shared_ptr<Link> link_;
  const std::size_t servers_;
  std::size_t turn_;          // which server is next; advances after each failure
  std::size_t failures_ = 0;  // in a row
  backoff backoff_;
  time_point not_before_{};  // the next attempt
  time_point opened_at_{};
  std::optional<error> last_failure_;

 private:
  [[nodiscard]] Self& self() noexcept { return static_cast<Self&>(*this); }
  [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }

  time_point alarm_at_ = time_point::max();  // not later than any deadline
  spi::runtime::timer_id alarm_ = 0;
  spi::runtime::timer_id rest_timer_ = 0;
};

}  // namespace holdfast::net
