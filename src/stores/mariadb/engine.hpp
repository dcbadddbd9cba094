// What tells MariaDB from the other SQL servers, for the stores that all of them share (src/stores/sql).
#pragma once

#include "net/backoff.hpp"
#include "net/connector.hpp"
#include "stores/mariadb/link.hpp"
#include "stores/mariadb/notification_listener.hpp"
#include "stores/mariadb/options.hpp"
#include "stores/mariadb/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/wakeup_registry.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::mariadb {

// The same members in each engine: what sql/server_store.hpp and the stores above it are written for.
struct engine {
  static constexpr const char* name = "mariadb";
  static constexpr bool calls_end_transactions = true;

  using arguments = mariadb::arguments;
  using connection = mariadb::connection;
  using notification_listener = mariadb::notification_listener;
  using server_options = mariadb::server_options;
  using statement = mariadb::statement;
  using options_ptr = std::shared_ptr<const server_options>;

  // For looks and interests. `process`: by which the others know this client.
  static std::shared_ptr<connection> make_control_connection(const net::network& net,
                                                             const options_ptr& options,
                                                             const std::string& process);
  // For the commands of strategy=lease, beside that one.
  static std::shared_ptr<connection> make_command_connection(const net::network& net,
                                                             const options_ptr& options);
  // For holds. `whose`: no other connection has this name; a former one of it ends.
  static std::shared_ptr<connection> make_carrier(const net::network& net,
                                                  const options_ptr& options,
                                                  const std::string& whose,
                                                  connection::events tell);

  static result<void> check_name(const spi::resource_id&) { return {}; }
  // What an administrator enters to end a session that is not ours.
  static std::string ending(const std::string& pid) { return "KILL " + pid; }

  // strategy=lease: how a claim is asked for and left.
  static call attempt(const std::string& key, const spi::claim& claim, const std::string& process,
                      const sql::wakeup_registry& wakeups);
  static result<spi::outcome> to_outcome(const sql::rows& said, const spi::claim& claim);
  static call leave(const std::string& key, const spi::claim& claim, bool unanswered,
                    const sql::wakeup_registry& wakeups);
  static result<spi::departure> to_departure(const sql::rows& said);

  // All in one transaction.
  static constexpr std::size_t renewals_per_call = 256;
  // `claims`: sorted by their keys.
  static arguments renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                     const std::string& process);
  // In the order of the claims.
  static result<std::vector<spi::renewal>> to_renewals(const sql::rows& said,
                                                       const std::vector<spi::claim_ptr>& claims);
};

// The store behind mariadb://. `pauses`: between two attempts to connect.
result<std::shared_ptr<spi::store>> open_mariadb(const spi::url& url,
                                                 std::shared_ptr<spi::reactor> reactor,
                                                 const net::backoff_limits& pauses);

// What `doctor` asks of the server, and what it says to the answers.
//
// `answer`: of examine.sql.inc, a word and its value a line. `hears`: wake-ups arrive.
std::vector<spi::check> examined(const sql::rows& answer, const server_options& options,
                                 bool hears);

// What it says where no server answers, or one that does not let us in.
std::vector<spi::check> refused(const error& why, const server_options& options);

}  // namespace holdfast::mariadb
