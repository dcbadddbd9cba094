// The differences between SQL servers, for the stores that they share.
#pragma once

#include "net/connector.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/connection.hpp"
#include "stores/sql/options.hpp"
#include "stores/sql/statement.hpp"
#include "stores/sql/switchboard.hpp"
#include "stores/sql/wakeup_registry.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::sql {

// Thread-safe: constant.
class engine {
 public:
  virtual ~engine() = default;
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  const std::string name;
  // PostgreSQL's functions do not: begin and commit are calls of their own, in the same packet.
  const bool calls_end_transactions;
  // All in one transaction.
  const std::size_t renewals_per_call;

  [[nodiscard]] virtual const server_options& options() const noexcept = 0;

  // For looks and interests. `process`: the others' name for this client.
  [[nodiscard]] virtual std::shared_ptr<connection> make_control_connection(
      const net::network& net, const std::string& process) const = 0;
  // For the commands of strategy=lease, in addition to the control connection.
  [[nodiscard]] virtual std::shared_ptr<connection> make_command_connection(
      const net::network& net) const = 0;
  // For holds. `whose`: no other connection has this name; a former one with it ends.
  [[nodiscard]] virtual std::shared_ptr<connection> make_carrier(const net::network& net,
                                                                 const std::string& whose,
                                                                 connection::events tell) const = 0;
  [[nodiscard]] virtual std::shared_ptr<notification_listener> make_listener(
      const net::network& net, const std::string& process,
      const std::shared_ptr<switchboard>& board) const = 0;

  // strategy=session: invalid if a name is not possible.
  [[nodiscard]] virtual result<void> check_name(const spi::resource_id&) const { return {}; }
  // What an administrator enters to end a foreign session.
  [[nodiscard]] virtual std::string ending(const std::string& pid) const = 0;

  // strategy=lease: how a claim is requested and left.
  [[nodiscard]] virtual call attempt(const std::string& key, const spi::claim& claim,
                                     const std::string& process,
                                     const wakeup_registry& wakeups) const = 0;
  [[nodiscard]] virtual result<spi::outcome> to_outcome(const rows& said,
                                                        const spi::claim& claim) const = 0;
  [[nodiscard]] virtual call leave(const std::string& key, const spi::claim& claim, bool unanswered,
                                   const wakeup_registry& wakeups) const = 0;
  [[nodiscard]] virtual result<spi::departure> to_departure(const rows& said) const {
    return sql::to_departure(said);
  }
  // `claims`: sorted by their keys.
  [[nodiscard]] virtual arguments renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                                    const std::string& process) const = 0;
  // In the order of the claims.
  [[nodiscard]] virtual result<std::vector<spi::renewal>> to_renewals(
      const rows& said, const std::vector<spi::claim_ptr>& claims) const {
    return sql::to_renewals(said, claims.size());
  }

  // The checks of `doctor`, from the answers of examine.sql.inc, a word and its value per line.
  // `hears`: wake-ups arrive.
  [[nodiscard]] virtual std::vector<spi::check> examined(const rows& answer, bool hears) const = 0;
  // The checks if no server answers, or one refuses the connection.
  [[nodiscard]] virtual std::vector<spi::check> refused(const error& why) const = 0;

 protected:
  engine(std::string called, bool ends, std::size_t renewals)
      : name(std::move(called)), calls_end_transactions(ends), renewals_per_call(renewals) {}
};

}  // namespace holdfast::sql
