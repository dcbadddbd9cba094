// Clients of a real PostgreSQL server, and ways to disturb them.
#pragma once

#include "integration/sql_harness.hpp"
#include "support/postgresql_server.hpp"
#include "support/postgresql_session.hpp"

#include <string>

namespace holdfast::test {

inline postgresql_session admin_of(const postgresql_server& server) {
  return postgresql_session("host=127.0.0.1 user=tester dbname=postgres port=" +
                            std::to_string(server.port()));
}

// A server that the tests of one suite may stop and break, as long as they leave it running.
inline postgresql_server& troubled_server() {
  static postgresql_server server;
  return server;
}

}  // namespace holdfast::test
