// Which MariaDB server, as whom, and where in it: a URL's meaning.
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
#include <vector>

namespace holdfast::mariadb {

enum class tls_mode : std::uint8_t {
  disabled,  // plain
  required,  // encrypted, whoever answers
  verified,  // encrypted, and the certificate must be good and of that name
};

struct server_options {
  // Tried in turn until one accepts writes. A host that begins with '/' is a unix socket.
  std::vector<spi::endpoint> hosts;
  std::string user;                  // empty: as libmariadb finds it
  spi::secret password;              // empty: none, or of the defaults file
  std::string database;              // never empty
  std::string prefix = "holdfast_";  // of all tables and procedures
  std::string defaults;              // an option file with a [client] part; empty: none is read
  sql::strategy strategy = sql::strategy::lease;
  tls_mode tls = tls_mode::disabled;
  std::string tls_authorities;  // a file; empty: the system's
  std::string tls_certificate;
  std::string tls_key;
  // lease: for commands; row: how many locks can be held at once. Wake-ups have one more.
  std::size_t connections = 4;
  bool pooler_is_fine = false;  // a proxy that keeps a session on its server is in between
  duration connect_limit = std::chrono::seconds(5);  // resolve, connect, TLS, set-up together
  net::backoff_limits backoff;

  // For messages: "mariadb db.example:3306/shop".
  [[nodiscard]] std::string text() const;
};

inline constexpr std::uint16_t default_port = 3306;

// What every table's name begins with: needs no quotes, and leaves room for the longest name.
bool is_prefix(std::string_view text) noexcept;

// mariadb://[USER[:PASSWORD]@]HOST[:PORT],.../DATABASE[?OPTION=VALUE&...], also mysql://. invalid: an
// option that is not known, or a value out of its limits.
result<server_options> options_from(const spi::url& url);

}  // namespace holdfast::mariadb
