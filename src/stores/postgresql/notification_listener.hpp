// How this client hears from the others: one connection that listens to a channel of its own.
#pragma once

#include "net/connector.hpp"
#include "stores/postgresql/link.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/sql/switchboard.hpp"

#include <holdfast/result.hpp>

#include <memory>
#include <optional>
#include <string>

namespace holdfast::postgresql {

// Thread-safe. Messages sent while it is not connected are lost; when it is connected again everybody
// who waits is told to ask.
class notification_listener {
 public:
  // `process`: by which the others know us, and which names the channel.
  static std::shared_ptr<notification_listener> make(net::network net,
                                                     std::shared_ptr<const server_options> options,
                                                     const std::string& process,
                                                     std::shared_ptr<sql::switchboard> board);

  // Connects; the first call does, the others do nothing.
  void start() { connection_->start(); }
  [[nodiscard]] bool is_open() const { return connection_->is_open(); }
  // Why it does not hear, if it was tried.
  [[nodiscard]] std::optional<error> last_failure() const { return connection_->last_failure(); }

  // It goes to the server that this one is connected to, whenever it is; `lead`: the other way round.
  void follow(connection& command_connection) const { command_connection.lead(connection_); }
  void lead(const std::shared_ptr<connection>& control_connection) const {
    connection_->lead(control_connection);
  }

  // Afterwards nothing is heard any more.
  void close() noexcept { connection_->close(); }

 private:
  notification_listener() = default;

  std::shared_ptr<connection> connection_;  // set by make()
};

}  // namespace holdfast::postgresql
