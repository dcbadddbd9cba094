#include "net/connector.hpp"

#include "net/dialer.hpp"
#include "net/socket_stream.hpp"
#include "net/tls_stream.hpp"

#include <utility>

namespace holdfast::net {

network make_network(std::shared_ptr<spi::reactor> reactor) {
  auto names = std::make_shared<resolver>(reactor);
  return {std::move(reactor), std::move(names)};
}

connector::connector(network net, target where, std::shared_ptr<const tls_context> tls,
                     time_point deadline, spi::completion<std::shared_ptr<stream>> done)
    : net_(std::move(net)),
      where_(std::move(where)),
      tls_(std::move(tls)),
      deadline_(deadline),
      done_(std::move(done)) {}

std::shared_ptr<connector> connector::start(network net, target where,
                                            std::shared_ptr<const tls_context> tls,
                                            time_point deadline,
                                            spi::completion<std::shared_ptr<stream>> done) {
  std::shared_ptr<connector> self(
      new connector(std::move(net), std::move(where), std::move(tls), deadline, std::move(done)));
  {
    const std::scoped_lock lock(self->mutex_);
    self->timer_ = self->net_.reactor->at(deadline, [self] {
      self->finish(failure(errc::unavailable, self->where_.text() + ": not connected in time (" +
                                                  self->progress() + ")"));
    });
  }
  self->begin();
  return self;
}

void connector::cancel() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    done_ = nullptr;
  }
  finish(failure(errc::cancelled));
}

const char* connector::progress() {
  const std::scoped_lock lock(mutex_);
  if (over_) return "connected";
  if (shaking_ != nullptr) return "in the TLS handshake";
  return dialer_ != nullptr ? "connecting" : "resolving the name";
}

bool connector::shaking_hands() {
  const std::scoped_lock lock(mutex_);
  return !over_ && shaking_ != nullptr;
}

void connector::begin() {
  if (!where_.path.empty()) {
    auto to = address::unix_socket(where_.path);
    if (!to) return finish(tl::unexpected(to.error()));
    return dial({*to});
  }
  net_.resolver->resolve(where_.host, where_.port, deadline_,
                         [self = shared_from_this()](result<addresses> found) {
                           if (!found) return self->finish(tl::unexpected(found.error()));
                           self->dial(*found);
                         });
}

void connector::dial(const addresses& to) {
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return;
  }
  auto made = dialer::start(net_.reactor, to, deadline_,
                            [self = shared_from_this()](result<runtime::descriptor> socket) {
                              if (!socket) return self->finish(tl::unexpected(socket.error()));
                              self->connected(std::move(*socket));
                            });
  std::unique_lock lock(mutex_);
  dialer_ = made;
  if (!over_) return;
  lock.unlock();
  made->cancel();  // cancelled just before it was known
}

void connector::connected(runtime::descriptor socket) {
  auto made = std::make_shared<socket_stream>(net_.reactor, std::move(socket), where_.text());
  if (tls_ == nullptr) return finish(std::move(made));
  shake(std::move(made));
}

void connector::shake(std::shared_ptr<stream> carrier) {
  auto made = tls_stream::make(std::move(carrier), tls_, where_.host, where_.text());
  if (made == nullptr) {
    return finish(failure(errc::unavailable, where_.text() + ": TLS: " + tls_problem()));
  }
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return;
    shaking_ = made;
  }
  made->handshake([self = shared_from_this(), weak = std::weak_ptr(made)](result<void> shaken) {
    if (!shaken) return self->finish(tl::unexpected(shaken.error()));
    self->finish(weak.lock());
  });
}

void connector::finish(result<std::shared_ptr<stream>> outcome) {
  std::unique_lock lock(mutex_);
  if (std::exchange(over_, true)) return;
  spi::completion<std::shared_ptr<stream>> done = std::move(done_);
  const std::shared_ptr<dialer> dialing = std::move(dialer_);
  const std::shared_ptr<tls_stream> shaking = std::move(shaking_);
  const spi::runtime::timer_id timer = timer_;
  lock.unlock();
  net_.reactor->cancel(timer);
  if (dialing != nullptr) dialing->cancel();
  if (shaking != nullptr && !outcome) shaking->close();
  if (done) done(std::move(outcome));
}

}  // namespace holdfast::net
