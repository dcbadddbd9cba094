// How a store hears of what others do: a notification listener, who is reached by it, and the interests of those
// who observe names or wait for latches, told to the server again and again while they last.
#pragma once

#include "net/connector.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/names.hpp"
#include "stores/sql/switchboard.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::sql {

// Thread-safe. `Engine`: what tells one server from another (engine.hpp of each).
template <class Engine>
class notifications : public std::enable_shared_from_this<notifications<Engine>> {
 public:
  using connection = typename Engine::connection;
  using arguments = typename Engine::arguments;
  using statement = typename Engine::statement;
  using options_ptr = std::shared_ptr<const typename Engine::server_options>;

  // `process`: by which the others know this client. `control connection`: over which the server is told. `taken`:
  // after the holder has been told that its hold was taken away.
  static std::shared_ptr<notifications> make(const net::network& net, const options_ptr& options,
                                             const std::string& process,
                                             std::shared_ptr<connection> control_connection,
                                             std::function<void(const spi::claim_id&)> taken = {});

  [[nodiscard]] sql::wakeup_registry& wakeup_registry() noexcept { return *wakeups_; }
  [[nodiscard]] const std::shared_ptr<sql::wakeup_registry>& shared_wakeups() noexcept {
    return wakeups_;
  }
  [[nodiscard]] const std::string& process() const noexcept { return process_; }

  void start() { listener_->start(); }
  // Where this connection goes, the notification listener goes too, and the control connection with it.
  void follow(connection& command_connection) { listener_->follow(command_connection); }
  // Once it hears; unavailable at the deadline, or why it cannot.
  void when_open(time_point deadline, spi::completion<void> done);

  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink);
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change);

  // Afterwards nothing is heard any more, and who waited for it to open has been answered.
  void close() noexcept;

 private:
  static constexpr duration interest_life = std::chrono::seconds(30);
  static constexpr duration interest_interval = std::chrono::seconds(10);
  static constexpr duration interest_limit = std::chrono::seconds(5);  // for one call

  // An answer that a thread waits for while it drives the reactor.
  struct meeting {
    std::atomic<bool> done{false};
    result<void> outcome;
  };

  notifications(const net::network& net, std::string process,
                std::shared_ptr<connection> control_connection)
      : reactor_(net.reactor),
        process_(std::move(process)),
        control_(std::move(control_connection)) {}

  void send_interests(const subscribers::interests& what, time_point deadline,
                      spi::completion<void> done);
  void refresh_interests();
  result<void> await_observation(const std::string& key);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::string process_;
  const std::shared_ptr<connection> control_;
  const std::shared_ptr<sql::wakeup_registry> wakeups_ = std::make_shared<sql::wakeup_registry>();
  // Set by make(), then constant.
  std::shared_ptr<sql::subscribers> subscribers_;
  std::shared_ptr<switchboard> board_;
  std::shared_ptr<typename Engine::notification_listener> listener_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> refreshing_interests_{false};
};

template <class Engine>
std::shared_ptr<notifications<Engine>> notifications<Engine>::make(
    const net::network& net, const options_ptr& options, const std::string& process,
    std::shared_ptr<connection> control_connection,
    std::function<void(const spi::claim_id&)> taken) {
  std::shared_ptr<notifications> made(
      new notifications(net, process, std::move(control_connection)));
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
  made->listener_ = Engine::notification_listener::make(net, options, process, made->board_);
  made->follow(*made->control_);
  made->listener_->lead(made->control_);
  return made;
}

template <class Engine>
void notifications<Engine>::when_open(time_point deadline, spi::completion<void> done) {
  start();
  board_->await(std::move(done));
  if (listener_->is_open()) return board_->answer({});
  reactor_->at(deadline, [weak = this->weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->board_->answer(tl::unexpected(self->listener_->last_failure().value_or(
        error{errc::unavailable, std::string(Engine::name) + ": not connected in time"})));
  });
}

template <class Engine>
void notifications<Engine>::close() noexcept {
  if (closed_.exchange(true)) return;
  listener_->close();
  board_->answer(failure(errc::cancelled, "closed"));
  subscribers_->close();
  wakeups_->clear();
}

template <class Engine>
void notifications<Engine>::send_interests(const subscribers::interests& what, time_point deadline,
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

template <class Engine>
void notifications<Engine>::refresh_interests() {
  if (refreshing_interests_.exchange(true)) return;
  reactor_->at(reactor_->now() + interest_interval, [weak = this->weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->closed_) return;
    self->refreshing_interests_ = false;
    const auto all = self->subscribers_->all();
    if (all.empty()) return;
    self->send_interests(all, self->reactor_->now() + interest_limit, [](const result<void>&) {});
  });
}

// Registered when it returns, unless the calling thread must not wait.
template <class Engine>
result<void> notifications<Engine>::await_observation(const std::string& key) {
  const time_point deadline = reactor_->now() + interest_limit;
  auto met = std::make_shared<meeting>();
  const auto arrive = [met, reactor = reactor_](const result<void>& outcome) {
    met->outcome = outcome;
    met->done.store(true, std::memory_order_release);
    reactor->wake(met->done);
  };
  when_open(deadline,
            [weak = this->weak_from_this(), key, deadline, arrive](const result<void>& open) {
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

template <class Engine>
result<std::unique_ptr<spi::subscription>> notifications<Engine>::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  const std::string key = key_of(resource);
  auto made = subscribers_->observe(key, std::move(sink));
  if (auto told = await_observation(key); !told) return tl::unexpected(std::move(told.error()));
  return made;
}

template <class Engine>
result<std::unique_ptr<spi::subscription>> notifications<Engine>::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  const std::string key = key_of(resource);
  auto made = subscribers_->watch_latch(key, std::move(on_change));
  // What changes before the server knows of us is found by looking again once it does.
  send_interests({{}, {key}}, reactor_->now() + interest_limit,
                 [subscribers = subscribers_, key](const result<void>& told) {
                   if (told) subscribers->tell_latch(key);
                 });
  return made;
}

}  // namespace holdfast::sql
