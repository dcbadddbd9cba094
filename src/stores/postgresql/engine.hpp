// How PostgreSQL differs from the other SQL servers.
#pragma once

#include "net/backoff.hpp"
#include "net/connector.hpp"
#include "stores/postgresql/link.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/postgresql/statement.hpp"
#include "stores/sql/engine.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::postgresql {

class engine : public sql::engine {
 public:
  explicit engine(std::shared_ptr<const server_options> options)
      : sql::engine("postgresql", false, std::numeric_limits<std::size_t>::max()),
        options_(std::move(options)) {}

  [[nodiscard]] const sql::server_options& options() const noexcept override { return *options_; }

  [[nodiscard]] std::shared_ptr<sql::connection> make_control_connection(
      const net::network& net, const std::string& process) const override;
  [[nodiscard]] std::shared_ptr<sql::connection> make_command_connection(
      const net::network& net) const override;
  [[nodiscard]] std::shared_ptr<sql::connection> make_carrier(
      const net::network& net, const std::string& whose,
      sql::connection::events tell) const override;
  // It listens to a channel of its own. Messages sent while it is not connected are lost.
  [[nodiscard]] std::shared_ptr<sql::notification_listener> make_listener(
      const net::network& net, const std::string& process,
      const std::shared_ptr<sql::switchboard>& board) const override;

  // strategy=session: invalid if it begins like the name of an advisory key and is not one.
  [[nodiscard]] result<void> check_name(const spi::resource_id& resource) const override;
  [[nodiscard]] std::string ending(const std::string& pid) const override {
    return "SELECT pg_terminate_backend(" + pid + ")";
  }

  [[nodiscard]] call attempt(const std::string& key, const spi::claim& claim,
                             const std::string& process,
                             const sql::wakeup_registry& wakeups) const override;
  [[nodiscard]] result<spi::outcome> to_outcome(const sql::rows& said,
                                                const spi::claim& claim) const override {
    return sql::to_outcome(said, claim.ttl);
  }
  [[nodiscard]] call leave(const std::string& key, const spi::claim& claim, bool unanswered,
                           const sql::wakeup_registry& wakeups) const override;
  [[nodiscard]] arguments renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                            const std::string& process) const override;

  [[nodiscard]] std::vector<spi::check> examined(const sql::rows& answer,
                                                 bool hears) const override;
  [[nodiscard]] std::vector<spi::check> refused(const error& why) const override;

 private:
  [[nodiscard]] std::shared_ptr<sql::connection> make(const net::network& net, manner how,
                                                      sql::connection::events tell = {}) const;

  const std::shared_ptr<const server_options> options_;
};

// The store behind postgresql://. `pauses`: between two attempts to connect.
result<std::shared_ptr<spi::store>> open_postgresql(const spi::url& url,
                                                    std::shared_ptr<spi::reactor> reactor,
                                                    const net::backoff_limits& pauses);

}  // namespace holdfast::postgresql
