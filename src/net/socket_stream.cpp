#include "net/socket_stream.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast::net {

socket_stream::socket_stream(std::shared_ptr<spi::reactor> reactor, runtime::descriptor socket,
                             std::string where)
    : reactor_(std::move(reactor)),
      where_(std::move(where)),
      incoming_(read_size),
      socket_(std::move(socket)) {
  // Every call is made non-blocking by its own flag, except for the read of an awaited answer. If
  // the limit cannot be set, no read waits.
  const timeval limit{0, read_patience.count()};
  const int flags = ::fcntl(socket_.get(), F_GETFL);
  patient_ = ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
             flags >= 0 && ::fcntl(socket_.get(), F_SETFL, flags & ~O_NONBLOCK) == 0;
}

socket_stream::~socket_stream() { close(); }

void socket_stream::start(std::weak_ptr<stream_user> user) {
  if (guard_.forked()) return;
  user_ = std::move(user);
  mutex_lock lock(mutex_);
  if (closed_) return;
  try {
    // Under the mutex: ready() may come before watch() has returned the id.
    watch_ = reactor_->watch(socket_.get(), true, blocked_,
                             [weak = weak_from_this()](spi::readiness what) {
                               if (const auto self = weak.lock()) self->ready(what);
                             });
  } catch (const std::system_error& problem) {
    why_ = socket_error("watch", where_, problem.code().value());
    lock.unlock();
    reactor_->post([self = shared_from_this()] {
      if (const auto told = self->user_.lock()) self->end(told.get(), *self->why_);
    });
  }
}

void socket_stream::queue(std::string_view bytes) {
  if (guard_.forked()) return;
  const std::scoped_lock lock(mutex_);
  if (closed_ || why_) return;
  queued_ += bytes;
  unsent_ += bytes.size();
}

void socket_stream::flush() noexcept {
  if (unsent() == 0 || guard_.forked()) return;
  mutex_lock lock(mutex_);
  if (blocked_) return;
  write(lock);
  if (watch_ != 0) reactor_->expect(watch_);
}

std::size_t socket_stream::unsent() const noexcept {
  return unsent_.load(std::memory_order_relaxed);
}

void socket_stream::close() noexcept {
  if (guard_.forked())
    return;  // the descriptor closes the child's copy, without notifying the peer
  mutex_lock lock(mutex_);
  if (std::exchange(closed_, true)) return;
  const spi::reactor::watch_id watch = std::exchange(watch_, 0);
  lock.unlock();
  if (watch != 0) reactor_->unwatch(watch);
  lock.lock();
  unwatched_ = true;
  if (!writing_) end_socket();
}

// Called with the mutex held.
void socket_stream::end_socket() noexcept {
  // A forked child may have the socket, too: without this the peer would not learn of the end.
  ::shutdown(socket_.get(), SHUT_RDWR);
  socket_.close();
}

void socket_stream::ready(spi::readiness what) {
  const std::shared_ptr<stream_user> user = user_.lock();
  if (user == nullptr) return close();
  if (what.writable) {
    mutex_lock lock(mutex_);
    blocked_ = false;
    write(lock);
    if (!blocked_) await_writable(false);
  }
  if (what.readable || what.hung_up) receive(*user, what.awaited && patient_);
}

void socket_stream::receive(stream_user& user, bool awaited) {
  for (int left = reads_per_turn; left > 0; --left) {
    // No other thread closes the socket now: close() waits for this callback.
    const int flags = std::exchange(awaited, false) ? 0 : MSG_DONTWAIT;
    const ssize_t got = ::recv(socket_.get(), incoming_.data(), incoming_.size(), flags);
    if (got > 0) {
      user.received({incoming_.data(), static_cast<std::size_t>(got)});
      if (static_cast<std::size_t>(got) < incoming_.size()) return;
      const std::scoped_lock lock(mutex_);
      if (closed_) return;
    } else if (got == 0) {
      return end(&user, {errc::unavailable, where_ + ": closed by the server"});
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      return end(&user, socket_error("receive from", where_, errno));
    }
  }
}

void socket_stream::end(stream_user* user, error why) {
  {
    const std::scoped_lock lock(mutex_);
    if (closed_) return;
    if (why_) why = *why_;  // what came first says more
  }
  close();
  user->ended(why);
}

// Called with the mutex held; holds it again at the end.
void socket_stream::write(mutex_lock& lock) noexcept {
  if (writing_) return;
  writing_ = true;
  int left = writes_per_thread;
  while (!closed_ && !why_ && unsent_ > 0 && left-- > 0) {
    if (!write_once(lock)) break;
  }
  writing_ = false;
  if (unwatched_) return end_socket();
  if (!blocked_ && !why_ && unsent_ > 0) {
    reactor_->post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->flush();
    });
  }
}

// One call of the system, outside the mutex. False: nothing more can be written now.
bool socket_stream::write_once(mutex_lock& lock) noexcept {
  if (sent_ == sending_.size()) {
    sending_.clear();
    if (sending_.capacity() > kept_capacity) sending_ = std::string();
    sent_ = 0;
    std::swap(sending_, queued_);
  }
  const char* from = sending_.data() + sent_;
  const std::size_t size = sending_.size() - sent_;
  const int socket = socket_.get();
  lock.unlock();
  const ssize_t written = ::send(socket, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  const int problem = errno;
  lock.lock();
  if (written >= 0) {
    sent_ += static_cast<std::size_t>(written);
    unsent_ -= static_cast<std::size_t>(written);
    return true;
  }
  if (problem == EINTR) return true;
  if (problem != EAGAIN) {
    write_failed(problem);
    return false;
  }
  blocked_ = true;
  await_writable(true);
  return false;
}

// Called with the mutex held. Not yet watched: start() looks at blocked_.
void socket_stream::await_writable(bool wanted) noexcept {
  if (watch_ == 0) return;
  try {
    reactor_->rewatch(watch_, true, wanted);
  } catch (const std::system_error& problem) {
    write_failed(problem.code().value());
  }
}

// Called with the mutex held. The reading side notices the shut-down, and reports it.
void socket_stream::write_failed(int number) noexcept {
  why_ = socket_error("send to", where_, number);
  unsent_ = 0;
  if (!unwatched_) ::shutdown(socket_.get(), SHUT_RDWR);
}

namespace {

// Options that a kernel does not know are no reason to fail: deadlines guard every request anyway.
void set(int socket, int level, int option, int value) noexcept {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

void set_tcp_options(int socket, const keepalive& life) noexcept {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(life.idle.count()));
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(life.interval.count()));
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, life.count);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(life.unacknowledged.count()));
}

}  // namespace

error socket_error(const char* what, const std::string& where, int number) {
  return {errc::unavailable,
          std::string(what) + " " + where + ": " + std::system_category().message(number)};
}

result<connecting_socket> begin_connect(const address& to, const keepalive& life) {
  runtime::descriptor made(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (made.get() < 0) return tl::unexpected(socket_error("socket", to.text(), errno));
  if (to.family() != AF_UNIX) set_tcp_options(made.get(), life);
  const bool connected = ::connect(made.get(), to.data(), to.size()) == 0;
  // If a signal interrupts it, it goes on in the background, as with EINPROGRESS.
  if (!connected && errno != EINPROGRESS && errno != EINTR) {
    return tl::unexpected(socket_error("connect", to.text(), errno));
  }
  return connecting_socket{std::move(made), connected};
}

result<void> end_connect(int socket, const address& to) {
  int problem = 0;
  socklen_t size = sizeof problem;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size) != 0) problem = errno;
  if (problem != 0) return tl::unexpected(socket_error("connect", to.text(), problem));
  return {};
}

}  // namespace holdfast::net
