// One life of a connection to a SQL server, whatever its driver: the socket that is watched, what is told to its user,
// and its end. Never used again after that: a late answer must not be taken for another's.
#pragma once

#include "net/connector.hpp"
#include "net/socket_stream.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/connection.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::sql {

// Thread-safe. Self derives from this, and has
//   phase, phase_              with at least resolving, connecting, over
//   driver                     a smart pointer that ends what the driver has of the connection
//   driver take_driver()       with the mutex held
//   ready(spi::readiness)      something happened on the socket
//   progress()                 what takes so long
template <class Self>
class link_base : public std::enable_shared_from_this<Self> {
 public:
  using user = link_user<Self>;

  link_base(const link_base&) = delete;
  link_base& operator=(const link_base&) = delete;

  // The server has answered: what it does now takes its time.
  [[nodiscard]] bool spoken() {
    const std::lock_guard lock(mutex_);
    using phase = typename Self::phase;
    return self().phase_ != phase::resolving && self().phase_ != phase::connecting;
  }

  // No call to the user afterwards, unless this is called from within one. Not under a lock that the
  // calls take.
  void close() noexcept { end(); }

 protected:
  // What one event on the socket amounts to.
  struct harvest {
    std::vector<result<rows>> answers;
    std::vector<std::string> notes;  // of servers that notify on the same connection
    bool opened = false;
    std::optional<error> end;
  };

  link_base(net::network net, std::string where, std::weak_ptr<user> whose)
      : net_(std::move(net)), user_(std::move(whose)), where_(std::move(where)) {}
  ~link_base() = default;

  // Called with the mutex held.
  void limit_set_up(duration time) {
    if (timer_ != 0) net_.reactor->cancel(timer_);
    timer_ = net_.reactor->at(net_.reactor->now() + time, [weak = this->weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->fail(
          {errc::unavailable, self->where_ + ": not connected in time (" + self->progress() + ")"});
    });
  }

  // Called with the mutex held.
  void watch_socket(int socket, bool readable, bool writable) {
    try {
      if (watched_) return net_.reactor->rewatch(watch_, readable, writable);
      watch_ = net_.reactor->watch(socket, readable, writable,
                                   [weak = this->weak_from_this()](spi::readiness how) {
                                     if (const auto self = weak.lock()) self->ready(how);
                                   });
      watched_ = true;
    } catch (const std::system_error& problem) {
      // Not from here, where the mutex is held.
      net_.reactor->post([weak = this->weak_from_this(),
                          why = net::socket_error("watch", where_, problem.code().value())] {
        if (const auto self = weak.lock()) self->fail(why);
      });
    }
  }
  void unwatch_within() noexcept {
    if (std::exchange(watched_, false)) net_.reactor->unwatch(watch_);
  }
  [[nodiscard]] bool watched() const noexcept { return watched_; }

  void deliver(harvest& what) {
    const auto alive = this->shared_from_this();
    if (const auto told = user_.lock()) {
      if (what.opened) told->opened(self());
      if (!what.answers.empty()) told->received(self(), what.answers, what.end.has_value());
      for (const std::string& note : what.notes) told->notified(self(), note);
    }
    if (what.end) fail(*what.end);
  }

  void fail(const error& why) noexcept {
    const auto alive = this->shared_from_this();
    if (!end()) return;
    if (const auto told = user_.lock()) told->ended(self(), why);
  }

  // The link is open: nothing limits its set-up any more. Called with the mutex held.
  void set_up_is_over() noexcept { net_.reactor->cancel(timer_); }

  const net::network net_;
  const std::weak_ptr<user> user_;
  const std::string where_;
  const runtime::fork_guard guard_;
  std::mutex mutex_;

 private:
  Self& self() noexcept { return static_cast<Self&>(*this); }

  // False: it was over already.
  bool end() noexcept {
    typename Self::driver ended;  // ends when nothing watches it any more
    spi::runtime::timer_id timer = 0;
    bool watched = false;
    {
      const std::lock_guard lock(mutex_);
      using phase = typename Self::phase;
      if (std::exchange(self().phase_, phase::over) == phase::over) return false;
      ended = self().take_driver();
      watched = std::exchange(watched_, false);
      timer = timer_;
    }
    net_.reactor->cancel(timer);
    if (watched) net_.reactor->unwatch(watch_);
    return true;
  }

  // All below: guarded by mutex_.
  spi::reactor::watch_id watch_ = 0;
  bool watched_ = false;
  spi::runtime::timer_id timer_ = 0;  // for the set-up
};

}  // namespace holdfast::sql
