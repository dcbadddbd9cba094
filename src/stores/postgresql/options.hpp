// Which PostgreSQL server, as whom, and where in it: a URL's meaning.
#pragma once

#include "stores/sql/options.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/url.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::postgresql {

struct server_options : sql::server_options {
  // As libpq names them: sslmode, sslrootcert, application_name ...
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string schema = "holdfast";  // an identifier that needs no quotes

  [[nodiscard]] std::string text() const { return sql::server_options::text("postgresql"); }
};

inline constexpr std::uint16_t default_port = 5432;

// An identifier that needs no quotes, and is not one of the server's own.
bool is_schema_name(std::string_view text) noexcept;

// postgresql://[USER[:PASSWORD]@][HOST[:PORT],...][/DATABASE][?OPTION=VALUE&...]. invalid: an
// unknown option, or a value out of its limits.
result<server_options> options_from(const spi::url& url);

}  // namespace holdfast::postgresql
