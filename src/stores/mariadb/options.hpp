// Which MariaDB server, as whom, and where in it: a URL's meaning.
#pragma once

#include "stores/sql/options.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/url.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::mariadb {

enum class tls_mode : std::uint8_t {
  disabled,  // plain
  required,  // encrypted, whatever server answers
  verified,  // encrypted, with a valid certificate for that name
};

struct server_options : sql::server_options {
  std::string prefix = "holdfast_";  // of all tables and procedures
  std::string defaults;              // an option file with a [client] part; empty: none is read
  tls_mode tls = tls_mode::disabled;
  std::string tls_authorities;  // a file; empty: the system's
  std::string tls_certificate;
  std::string tls_key;

  [[nodiscard]] std::string text() const { return sql::server_options::text("mariadb"); }
};

inline constexpr std::uint16_t default_port = 3306;

// The prefix of every table's name: needs no quotes, and leaves room for the longest name.
bool is_prefix(std::string_view text) noexcept;

// mariadb://[USER[:PASSWORD]@]HOST[:PORT],.../DATABASE[?OPTION=VALUE&...], also mysql://. invalid:
// an unknown option, or a value out of its limits.
result<server_options> options_from(const spi::url& url);

}  // namespace holdfast::mariadb
