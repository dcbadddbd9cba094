#include "net/connector.hpp"

#include "net/socket_stream.hpp"
#include "net/tls_context.hpp"

#include <algorithm>
#include <system_error>
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

addresses interleaved(const addresses& from) {
  addresses left(from);
  addresses order;
  while (!left.empty()) {
    auto next = left.begin();
    if (!order.empty()) {
      const int last = order.back().family();
      const auto other =
          std::ranges::find_if(left, [last](const address& one) { return one.family() != last; });
      if (other != left.end()) next = other;
    }
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

dialer::dialer(std::shared_ptr<spi::reactor> reactor, addresses to,
               spi::completion<runtime::descriptor> done)
    : reactor_(std::move(reactor)), addresses_(std::move(to)), done_(std::move(done)) {}

std::shared_ptr<dialer> dialer::start(std::shared_ptr<spi::reactor> reactor, const addresses& to,
                                      time_point deadline,
                                      spi::completion<runtime::descriptor> done) {
  addresses order = interleaved(to);
  if (order.size() > address_limit) order.erase(order.begin() + address_limit, order.end());
  std::shared_ptr<dialer> self(new dialer(std::move(reactor), std::move(order), std::move(done)));
  {
    const std::scoped_lock lock(self->mutex_);
    self->deadline_timer_ = self->reactor_->at(deadline, [self] {
      self->finish(failure(errc::unavailable, "connect: no answer in time"));
    });
  }
  self->proceed();
  return self;
}

void dialer::cancel() noexcept {
  std::unique_lock lock(mutex_);
  done_ = nullptr;
  lock.unlock();
  finish(failure(errc::cancelled));
}

// Tries the next address, and those after it as long as they are refused at once.
void dialer::proceed() {
  std::unique_lock lock(mutex_);
  const std::size_t before = attempts_.size();
  while (!over_ && attempts_.size() == before && next_ < addresses_.size()) {
    const address to = addresses_[next_++];
    begin(to);
    if (!attempts_.empty() && attempts_.back()->watch == 0) {
      // Connected at once, as unix sockets are.
      runtime::descriptor socket = std::move(attempts_.back()->socket);
      attempts_.pop_back();
      lock.unlock();
      return finish(std::move(socket));
    }
  }
  if (over_) return;
  if (attempts_.empty()) {
    const error why = refusal_.value_or(error{errc::unavailable, "connect: no address"});
    lock.unlock();
    return finish(tl::unexpected(why));
  }
  if (next_ < addresses_.size()) {
    stagger_timer_ = reactor_->at(reactor_->now() + head_start,
                                  [self = shared_from_this()] { self->proceed(); });
  }
}

// Called with the mutex held. Adds an attempt (with watch 0 if it is connected already) or a
// refusal.
void dialer::begin(const address& to) {
  auto begun = begin_connect(to);
  if (!begun) {
    refusal_ = begun.error();
    return;
  }
  auto mine = std::make_shared<attempt>(attempt{to, std::move(begun->socket), 0});
  if (!begun->connected) {
    try {
      mine->watch =
          reactor_->watch(mine->socket.get(), false, true,
                          [self = shared_from_this(), mine](spi::readiness) { self->ready(mine); });
    } catch (const std::system_error& problem) {
      refusal_ = socket_error("watch", to.text(), problem.code().value());
      return;
    }
  }
  attempts_.push_back(std::move(mine));
}

void dialer::ready(const attempt_ptr& mine) {
  std::unique_lock lock(mutex_);
  const auto place = std::ranges::find(attempts_, mine);
  if (over_ || place == attempts_.end()) return;
  attempts_.erase(place);
  const auto connected = end_connect(mine->socket.get(), mine->to);
  if (!connected) refusal_ = connected.error();
  lock.unlock();
  reactor_->unwatch(mine->watch);
  if (connected) return finish(std::move(mine->socket));
  mine->socket.close();
  proceed();
}

void dialer::finish(result<runtime::descriptor> outcome) {
  std::unique_lock lock(mutex_);
  if (std::exchange(over_, true)) return;
  std::vector<attempt_ptr> ended = std::exchange(attempts_, {});
  spi::completion<runtime::descriptor> done = std::move(done_);
  const auto timers = {deadline_timer_, stagger_timer_};
  lock.unlock();
  for (const auto timer : timers) reactor_->cancel(timer);
  release(ended);
  if (done) done(std::move(outcome));
}

void dialer::release(const std::vector<attempt_ptr>& ended) noexcept {
  for (const attempt_ptr& one : ended) {
    reactor_->unwatch(one->watch);
    one->socket.close();
  }
}

}  // namespace holdfast::net
