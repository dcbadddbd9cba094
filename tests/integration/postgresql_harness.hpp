// Clients of a real PostgreSQL server, and ways to be in their way.
#pragma once

#include "contract/contract.hpp"
#include "support/postgresql_server.hpp"
#include "support/postgresql_session.hpp"
#include "support/tcp_gate.hpp"

#include <holdfast/holdfast.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace holdfast::test {

// Throws lock_error.
inline client open_client(const std::string& url, client_options options = {}) {
  auto opened = client::open(url, std::move(options));
  if (!opened) throw lock_error(opened.error());
  return *std::move(opened);
}

// The same URL by another port: through a tcp_gate.
inline std::string by_port(const std::string& url, std::uint16_t port) {
  const auto colon = url.find(':', url.find('@'));
  return url.substr(0, colon + 1) + std::to_string(port) + url.substr(url.find('/', colon));
}

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
