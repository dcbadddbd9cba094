#include "stores/sql/notifications.hpp"

#include "stores/sql/common/names.hpp"

#include <cstdint>
#include <utility>

namespace holdfast::sql {

std::shared_ptr<notifications> notifications::make(
    const net::network& net, const engine& of, const std::string& process,
    std::shared_ptr<connection> control_connection,
    std::function<void(const spi::claim_id&)> taken) {
  std::shared_ptr<notifications> made(
      new notifications(net, of, process, std::move(control_connection)));
  made->subscribers_ = std::make_shared<subscribers>(
      [weak = std::weak_ptr(made)](const subscribers::interests& over) {
        const auto self = weak.lock();
        if (self == nullptr || self->closed_) return;
        arguments with;
        with.list(over.events).list(over.latches).text(self->process_);
        self->control_->send(statement::ignore, std::move(with),
                             self->reactor_->now() + interest_limit, [](const result<rows>&) {});
      });
  made->board_ =
      std::make_shared<switchboard>(made->wakeups_, made->subscribers_, std::move(taken));
  made->listener_ = of.make_listener(net, process, made->board_);
  made->follow(*made->control_);
  made->listener_->lead(made->control_);
  return made;
}

void notifications::when_open(time_point deadline, spi::completion<void> done) {
  start();
  const std::uint64_t number = board_->await(std::move(done));
  if (listener_->is_open()) return board_->answer({});
  reactor_->at(deadline, [weak = weak_from_this(), number] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->board_->expire(number,
                         self->listener_->last_failure().value_or(
                             error{errc::unavailable, self->engine_ + ": not connected in time"}));
  });
}

void notifications::close() noexcept {
  if (closed_.exchange(true)) return;
  listener_->close();
  board_->answer(failure(errc::cancelled, "closed"));
  subscribers_->close();
  wakeups_->clear();
}

void notifications::send_interests(const subscribers::interests& what, time_point deadline,
                                   spi::completion<void> done) {
  arguments with;
  with.list(what.events).list(what.latches).text(process_).number(microseconds(interest_life));
  control_->send(statement::interest, std::move(with), deadline,
                 [done = std::move(done)](result<rows> answer) mutable {
                   if (!answer) return done(tl::unexpected(std::move(answer.error())));
                   done({});
                 });
  refresh_interests();
}

void notifications::refresh_interests() {
  if (refreshing_interests_.exchange(true)) return;
  reactor_->at(reactor_->now() + interest_interval, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->closed_) return;
    self->refreshing_interests_ = false;
    const auto all = self->subscribers_->all();
    if (all.empty()) return;
    self->send_interests(all, self->reactor_->now() + interest_limit, [](const result<void>&) {});
  });
}

// Registered when it returns, unless the calling thread must not wait.
result<void> notifications::await_observation(const std::string& key) {
  const time_point deadline = reactor_->now() + interest_limit;
  auto met = std::make_shared<meeting>();
  const auto arrive = [met, reactor = reactor_](const result<void>& outcome) {
    met->outcome = outcome;
    met->done.store(true, std::memory_order_release);
    reactor->wake(met->done);
  };
  when_open(deadline, [weak = weak_from_this(), key, deadline, arrive](const result<void>& open) {
    const auto self = weak.lock();
    if (!open) return arrive(open);
    if (self == nullptr) return arrive(failure(errc::cancelled, "closed"));
    self->send_interests({{key}, {}}, deadline, arrive);
  });
  if (reactor_->on_own_thread()) return {};
  reactor_->wait(met->done);
  if (!met->done.load(std::memory_order_acquire)) return failure(errc::cancelled, "closed");
  return met->outcome;
}

result<std::unique_ptr<spi::subscription>> notifications::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  const std::string key = key_of(resource);
  auto made = subscribers_->observe(key, std::move(sink));
  if (auto told = await_observation(key); !told) return tl::unexpected(std::move(told.error()));
  return made;
}

result<std::unique_ptr<spi::subscription>> notifications::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  const std::string key = key_of(resource);
  auto made = subscribers_->watch_latch(key, std::move(on_change));
  // Changes before the server knows of us are found by looking again once it does.
  send_interests({{}, {key}}, reactor_->now() + interest_limit,
                 [subscribers = subscribers_, key](const result<void>& told) {
                   if (told) subscribers->tell_latch(key);
                 });
  return made;
}

}  // namespace holdfast::sql
