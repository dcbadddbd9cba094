// Clients of a real MariaDB server, and ways to disturb them.
#pragma once

#include "integration/sql_harness.hpp"
#include "support/mariadb_server.hpp"
#include "support/mariadb_session.hpp"

#include <string>

namespace holdfast::test {

inline mariadb_session admin_of(const mariadb_server& server) {
  return mariadb_session(server.port());
}

// A server that the tests of one suite may stop and break, as long as they leave it running.
inline mariadb_server& troubled_mariadb() {
  static mariadb_server server;
  return server;
}

}  // namespace holdfast::test
