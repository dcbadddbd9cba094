#include "stores/sql/link.hpp"

#include "net/socket_stream.hpp"

#include <system_error>
#include <utility>

namespace holdfast::sql {

bool link::spoken() {
  const std::lock_guard lock(mutex_);
  return phase_ != phase::resolving && phase_ != phase::connecting;
}

const char* link::progress() {
  const std::lock_guard lock(mutex_);
  switch (phase_) {
    case phase::resolving:
      return "resolving the name";
    case phase::connecting:
      return "connecting";
    case phase::locking:
    case phase::rechecking:
    case phase::installing:
    case phase::unlocking:
      return "making the tables";
    case phase::open:
    case phase::over:
      return "connected";
    default:
      return "setting up the session";
  }
}

void link::limit_set_up(duration time) {
  if (timer_ != 0) net_.reactor->cancel(timer_);
  timer_ = net_.reactor->at(net_.reactor->now() + time, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->fail(
        {errc::unavailable, self->where_ + ": not connected in time (" + self->progress() + ")"});
  });
}

void link::watch_socket(int socket, bool readable, bool writable) {
  try {
    if (watched_) return net_.reactor->rewatch(watch_, readable, writable);
    watch_ = net_.reactor->watch(socket, readable, writable,
                                 [weak = weak_from_this()](spi::readiness how) {
                                   if (const auto self = weak.lock()) self->ready(how);
                                 });
    watched_ = true;
  } catch (const std::system_error& problem) {
    // Posted, because the mutex is held here.
    net_.reactor->post([weak = weak_from_this(),
                        why = net::socket_error("watch", where_, problem.code().value())] {
      if (const auto self = weak.lock()) self->fail(why);
    });
  }
}

void link::unwatch_within() noexcept {
  if (std::exchange(watched_, false)) net_.reactor->unwatch(watch_);
}

void link::open_up(harvest& into) {
  phase_ = phase::open;
  into.opened = true;
  net_.reactor->cancel(timer_);
}

void link::deliver(harvest& what) {
  const auto alive = shared_from_this();
  if (const auto told = user_.lock()) {
    if (what.opened) told->opened(*this);
    if (!what.answers.empty()) told->received(*this, what.answers, what.end.has_value());
    for (const std::string& note : what.notes) told->notified(*this, note);
  }
  if (what.end) fail(*what.end);
}

void link::fail(const error& why) noexcept {
  const auto alive = shared_from_this();
  if (!end()) return;
  if (const auto told = user_.lock()) told->ended(*this, why);
}

// False: it had ended already.
bool link::end() noexcept {
  spi::runtime::timer_id timer = 0;
  bool watched = false;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(phase_, phase::over) == phase::over) return false;
    watched = std::exchange(watched_, false);
    timer = timer_;
  }
  net_.reactor->cancel(timer);
  if (watched) net_.reactor->unwatch(watch_);
  end_driver();
  return true;
}

}  // namespace holdfast::sql
