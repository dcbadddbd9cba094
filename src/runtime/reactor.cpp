#include "runtime/reactor.hpp"

#include "runtime/own_thread.hpp"
#include "runtime/random.hpp"
#include "runtime/service_thread.hpp"

#include <utility>

namespace holdfast::runtime {

epoll_reactor::epoll_reactor()
    : loop_(std::make_shared<event_loop>()),
      notifier_(loop_),
      engine_(start_service("holdfast-engine", [loop = loop_] { loop->serve(); })) {}

epoll_reactor::~epoll_reactor() {
  if (guard_.forked()) {
    loop_->abandon(loop_);
    notifier_.abandon();
    // Leaked: joining or detaching would touch a thread that this process does not have.
    [[maybe_unused]] const auto* thread = engine_.release();
    return;
  }
  loop_->stop();
  end_service(std::move(engine_));
  notifier_.stop();
  loop_->clear();
}

time_point epoll_reactor::now() const noexcept { return clock::now(); }

void epoll_reactor::post(spi::task work) {
  if (!guard_.forked()) loop_->post(std::move(work));
}

epoll_reactor::timer_id epoll_reactor::at(time_point when, spi::task work) {
  return guard_.forked() ? 0 : loop_->at(when, std::move(work));
}

void epoll_reactor::cancel(timer_id timer) noexcept {
  if (!guard_.forked()) loop_->cancel(timer);
}

std::uint64_t epoll_reactor::random() { return random_number(); }

void epoll_reactor::notify(spi::task work) {
  if (!guard_.forked()) notifier_.notify(std::move(work));
}

void epoll_reactor::expect(watch_id id) noexcept {
  if (!guard_.forked()) loop_->expect(id);
}

bool epoll_reactor::on_own_thread() const noexcept { return own_thread::inside(loop_.get()); }

void epoll_reactor::wait(const std::atomic<bool>& done) {
  if (guard_.forked()) return;
  // A task that this thread runs may end the reactor.
  const std::shared_ptr<event_loop> loop = loop_;
  loop->wait(done);
}

void epoll_reactor::wake(const std::atomic<bool>& done) noexcept {
  if (!guard_.forked()) loop_->wake(done);
}

epoll_reactor::watch_id epoll_reactor::watch(int fd, bool readable, bool writable,
                                             spi::function<void(spi::readiness)> on_ready) {
  return guard_.forked() ? 0 : loop_->watch(fd, readable, writable, std::move(on_ready));
}

void epoll_reactor::rewatch(watch_id id, bool readable, bool writable) {
  if (!guard_.forked()) loop_->rewatch(id, readable, writable);
}

void epoll_reactor::unwatch(watch_id id) noexcept {
  if (!guard_.forked()) loop_->unwatch(id);
}

}  // namespace holdfast::runtime

namespace holdfast::spi {

std::shared_ptr<reactor> make_reactor() {
  return std::make_shared<holdfast::runtime::epoll_reactor>();
}

}  // namespace holdfast::spi
