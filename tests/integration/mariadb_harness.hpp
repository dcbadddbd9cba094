// Clients of a real MariaDB server, and ways to be in their way.
#pragma once

#include "contract/contract.hpp"
#include "support/mariadb_server.hpp"
#include "support/mariadb_session.hpp"
#include "support/tcp_gate.hpp"

#include <holdfast/holdfast.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace holdfast::test {

// Throws lock_error.
inline client client_at(const std::string& url, client_options options = {}) {
  auto opened = client::open(url, std::move(options));
  if (!opened) throw lock_error(opened.error());
  return *std::move(opened);
}

// The same URL by another port: through a tcp_gate.
inline std::string through(const tcp_gate& gate, const std::string& url) {
  const auto colon = url.find(':', url.find('@'));
  return url.substr(0, colon + 1) + std::to_string(gate.port()) + url.substr(url.find('/', colon));
}

inline mariadb_session admin_of(const mariadb_server& server) {
  return mariadb_session(server.port());
}

// A server that the tests of one suite may stop and break, as long as they leave it running.
inline mariadb_server& troubled_mariadb() {
  static mariadb_server server;
  return server;
}

}  // namespace holdfast::test
