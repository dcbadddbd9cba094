// What tells PostgreSQL from the other SQL servers, for the stores that all of them share (src/stores/sql).
#pragma once

#include "net/backoff.hpp"
#include "net/connector.hpp"
#include "stores/postgresql/link.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/postgresql/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/switchboard.hpp"
#include "stores/sql/wakeup_registry.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::postgresql {

// It listens to a channel of its own. Messages sent while it is not connected are lost.
struct notification_listener : sql::listener_base<connection> {
  // `process`: by which the others know us, and which names the channel.
  static std::shared_ptr<notification_listener> make(net::network net,
                                                     std::shared_ptr<const server_options> options,
                                                     const std::string& process,
                                                     std::shared_ptr<sql::switchboard> board);
};

// The same members in each engine: what sql/server_store.hpp and the stores above it are written for.
struct engine {
  static constexpr const char* name = "postgresql";
  // Functions cannot: begin and commit are calls of their own, in the same packet.
  static constexpr bool calls_end_transactions = false;

  using arguments = postgresql::arguments;
  using connection = postgresql::connection;
  using notification_listener = postgresql::notification_listener;
  using server_options = postgresql::server_options;
  using statement = postgresql::statement;
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

  // strategy=session: invalid, if it begins as the name of an advisory key and is none.
  static result<void> check_name(const spi::resource_id& resource);
  // What an administrator enters to end a session that is not ours.
  static std::string ending(const std::string& pid) {
    return "SELECT pg_terminate_backend(" + pid + ")";
  }

  // strategy=lease: how a claim is asked for and left.
  static call attempt(const std::string& key, const spi::claim& claim, const std::string& process,
                      const sql::wakeup_registry& wakeups);
  static result<spi::outcome> to_outcome(const sql::rows& said, const spi::claim& claim);
  static call leave(const std::string& key, const spi::claim& claim, bool unanswered,
                    const sql::wakeup_registry& wakeups);
  static result<spi::departure> to_departure(const sql::rows& said);

  static constexpr std::size_t renewals_per_call = std::numeric_limits<std::size_t>::max();
  // `claims`: sorted by their keys.
  static arguments renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                     const std::string& process);
  // In the order of the claims.
  static result<std::vector<spi::renewal>> to_renewals(const sql::rows& said,
                                                       const std::vector<spi::claim_ptr>& claims);
};

// The store behind postgresql://. `pauses`: between two attempts to connect.
result<std::shared_ptr<spi::store>> open_postgresql(const spi::url& url,
                                                    std::shared_ptr<spi::reactor> reactor,
                                                    const net::backoff_limits& pauses);

// What `doctor` asks of the server, and what it says to the answers.
//
// `answer`: of examine.sql.inc, a word and its value a line. `hears`: wake-ups arrive.
std::vector<spi::check> examined(const sql::rows& answer, const server_options& options,
                                 bool hears);

// What it says where no server answers, or one that does not let us in.
std::vector<spi::check> refused(const error& why, const server_options& options);

}  // namespace holdfast::postgresql
