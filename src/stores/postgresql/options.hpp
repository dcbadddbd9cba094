// Which PostgreSQL server, as whom, and where in it: a URL's meaning.
#pragma once

#include "net/backoff.hpp"
#include "stores/sql/strategy.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/url.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::postgresql {

struct server_options {
  // Tried in turn until one accepts writes. A host that begins with '/' is a folder of unix sockets.
  std::vector<spi::endpoint> hosts;
  std::string user;      // empty: as libpq finds it
  spi::secret password;  // empty: as libpq finds it (a password file, a certificate)
  std::string database;  // empty: as libpq finds it
  // As libpq has them: sslmode, sslrootcert, application_name ...
  std::vector<std::pair<std::string, std::string>> parameters;
  sql::strategy strategy = sql::strategy::lease;
  std::string schema = "holdfast";  // an identifier without need of quotes
  // lease: for commands; row: how many locks can be held at once. Wake-ups have one more.
  std::size_t connections = 4;
  bool pooler_is_fine = false;  // a pooler that keeps a session on its server is in between
  duration connect_limit = std::chrono::seconds(5);  // resolve, connect, TLS, set-up together
  net::backoff_limits backoff;

  // For messages: "postgresql db.example:5432/shop".
  [[nodiscard]] std::string text() const;
};

inline constexpr std::uint16_t default_port = 5432;

// An identifier without need of quotes, and none of the server's own.
bool is_schema_name(std::string_view text) noexcept;

// postgresql://[USER[:PASSWORD]@][HOST[:PORT],...][/DATABASE][?OPTION=VALUE&...]. invalid: an option
// that is not known, or a value out of its limits.
result<server_options> options_from(const spi::url& url);

}  // namespace holdfast::postgresql
