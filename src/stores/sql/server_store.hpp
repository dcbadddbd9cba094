// What all strategies of all SQL servers have in common: a control connection, over which people look and the server is
// told who wants to hear of what, and the notification listener that hears it.
#pragma once

#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/sql/notifications.hpp"
#include "stores/sql/terms.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sql {

// Thread-safe. `Engine`: what tells one server from another (engine.hpp of each); its namespace has
// examined() and refused(), for `doctor`.
template <class Engine>
class server_store : public spi::store, public std::enable_shared_from_this<server_store<Engine>> {
 public:
  using connection = typename Engine::connection;
  using arguments = typename Engine::arguments;
  using statement = typename Engine::statement;
  using server_options = typename Engine::server_options;

  ~server_store() override = default;
  server_store(const server_store&) = delete;
  server_store& operator=(const server_store&) = delete;

  [[nodiscard]] const spi::caps& caps() const noexcept final { return caps_; }

  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) final;
  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) final;
  void probe(const spi::op_context& context, spi::completion<std::vector<spi::check>> done) final;

 protected:
  server_store(std::shared_ptr<spi::reactor> reactor, server_options options, spi::caps caps);

  [[nodiscard]] bool usable() const noexcept;
  [[nodiscard]] static tl::unexpected<error> refusal();
  // False: it was closed before, or this is the child of a fork, which touches nothing.
  [[nodiscard]] bool begin_close() noexcept;

  // One call, its rows turned into an answer by `convert`.
  template <class T, class Convert>
  void ask(connection& over, statement which, arguments&& with, const terms& until,
           spi::completion<T> done, Convert convert);

  const runtime::fork_guard guard_;
  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<const server_options> options_;
  const spi::caps caps_;
  const net::network net_;
  // Set once, when the store is made, then constant.
  std::shared_ptr<connection> control_;
  std::shared_ptr<sql::notifications<Engine>> notifications_;

 private:
  std::atomic<bool> closed_{false};
};

template <class Engine>
server_store<Engine>::server_store(std::shared_ptr<spi::reactor> reactor, server_options options,
                                   spi::caps caps)
    : reactor_(std::move(reactor)),
      options_(std::make_shared<const server_options>(std::move(options))),
      caps_(std::move(caps)),
      net_(net::make_network(reactor_)) {}

template <class Engine>
bool server_store<Engine>::usable() const noexcept {
  return !guard_.forked() && !closed_.load(std::memory_order_acquire);
}

template <class Engine>
tl::unexpected<error> server_store<Engine>::refusal() {
  return failure(errc::cancelled, std::string(Engine::name) + ": closed or forked");
}

template <class Engine>
bool server_store<Engine>::begin_close() noexcept {
  return !guard_.forked() && !closed_.exchange(true, std::memory_order_acq_rel);
}

template <class Engine>
template <class T, class Convert>
void server_store<Engine>::ask(connection& over, statement which, arguments&& with,
                               const terms& until, spi::completion<T> done, Convert convert) {
  if (!usable()) return done(refusal());
  over.send(which, std::move(with), until,
            [done = std::move(done), convert](result<sql::rows> said) mutable {
              if (!said) return done(tl::unexpected(std::move(said.error())));
              done(convert(*said));
            });
}

// Never asked for: whoever is blocked and wants to wait has a place in line.
template <class Engine>
void server_store<Engine>::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                                 spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

template <class Engine>
result<std::unique_ptr<spi::subscription>> server_store<Engine>::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (!usable()) return refusal();
  return notifications_->observe(resource, std::move(sink));
}

template <class Engine>
void server_store<Engine>::probe(const spi::op_context& context,
                                 spi::completion<std::vector<spi::check>> done) {
  if (!usable()) return done(refusal());
  // The deadline is the caller's; what is left after the wait for wake-ups is for the questions.
  const time_point half = reactor_->now() + (context.deadline - reactor_->now()) / 2;
  notifications_->when_open(half, [self = this->shared_from_this(), until = net::patience(context),
                                   done = std::move(done)](const result<void>& open) mutable {
    self->control_->send(
        statement::examine, {}, until,
        [self, hears = open.has_value(), done = std::move(done)](result<sql::rows> said) mutable {
          if (!said) return done(refused(said.error(), *self->options_));
          done(examined(*said, *self->options_, hears));
        });
  });
}

}  // namespace holdfast::sql
