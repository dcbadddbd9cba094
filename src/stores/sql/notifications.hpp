// How a store learns what others do: a notification listener, the receivers of its messages, and
// the interests of observers of names and waiters for latches, which the server is told of
// repeatedly while they last.
#pragma once

#include "net/connector.hpp"
#include "stores/sql/engine.hpp"
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

// Thread-safe.
class notifications : public std::enable_shared_from_this<notifications> {
 public:
  // `process`: the others' name for this client. `control connection`: over which the server is
  // told. `taken`: called after a holder has been notified that its hold was revoked.
  static std::shared_ptr<notifications> make(const net::network& net, const engine& of,
                                             const std::string& process,
                                             std::shared_ptr<connection> control_connection,
                                             std::function<void(const spi::claim_id&)> taken = {});

  [[nodiscard]] sql::wakeup_registry& wakeup_registry() noexcept { return *wakeups_; }
  [[nodiscard]] const std::shared_ptr<sql::wakeup_registry>& shared_wakeups() noexcept {
    return wakeups_;
  }
  [[nodiscard]] const std::string& process() const noexcept { return process_; }

  void start() { listener_->start(); }
  [[nodiscard]] bool is_open() const { return listener_->is_open(); }
  // The notification listener follows this connection to its server, and the
  // control connection with it.
  void follow(connection& command_connection) { listener_->follow(command_connection); }
  // Completes once it listens; unavailable at the deadline, or why it cannot.
  void when_open(time_point deadline, spi::completion<void> done);

  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink);
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change);

  // Afterwards no notifications arrive any more, and everything that waited for it
  // to open has been answered.
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

  notifications(const net::network& net, const engine& of, std::string process,
                std::shared_ptr<connection> control_connection)
      : engine_(of.name),
        reactor_(net.reactor),
        process_(std::move(process)),
        control_(std::move(control_connection)) {}

  void send_interests(const subscribers::interests& what, time_point deadline,
                      spi::completion<void> done);
  void refresh_interests();
  result<void> await_observation(const std::string& key);

  const std::string engine_;  // for messages
  const std::shared_ptr<spi::reactor> reactor_;
  const std::string process_;
  const std::shared_ptr<connection> control_;
  const std::shared_ptr<sql::wakeup_registry> wakeups_ = std::make_shared<sql::wakeup_registry>();
  // Set by make(), then constant.
  std::shared_ptr<sql::subscribers> subscribers_;
  std::shared_ptr<switchboard> board_;
  std::shared_ptr<notification_listener> listener_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> refreshing_interests_{false};
};

}  // namespace holdfast::sql
