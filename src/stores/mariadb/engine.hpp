// What tells MariaDB from the other SQL servers, for what all of them share (src/stores/sql).
#pragma once

#include "net/connector.hpp"
#include "stores/mariadb/connection.hpp"
#include "stores/mariadb/ear.hpp"
#include "stores/mariadb/options.hpp"
#include "stores/mariadb/statement.hpp"

#include <memory>
#include <string>

namespace holdfast::mariadb {

struct engine {
  static constexpr const char* name = "mariadb";
  static constexpr bool calls_end_transactions = true;

  using arguments = mariadb::arguments;
  using connection = mariadb::connection;
  using ear = mariadb::ear;
  using server_options = mariadb::server_options;
  using statement = mariadb::statement;
  using options_ptr = std::shared_ptr<const server_options>;

  // For looks and wishes. `process`: by which the others know this client.
  static std::shared_ptr<connection> make_desk(const net::network& net, const options_ptr& options,
                                               const std::string& process);
  // For holds. `whose`: no other connection has this name; a former one of it ends.
  static std::shared_ptr<connection> make_carrier(const net::network& net,
                                                  const options_ptr& options,
                                                  const std::string& whose,
                                                  connection::events tell);
};

}  // namespace holdfast::mariadb
