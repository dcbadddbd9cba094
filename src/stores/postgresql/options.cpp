#include "stores/postgresql/options.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace holdfast::postgresql {

namespace {

constexpr std::size_t identifier_limit = 63;

// Our own options, and those that are passed to libpq unchanged.
result<void> check_known(const spi::url& url) {
  return spi::check_options(
      url,
      {"strategy", "schema", "connections", "pooler", "host", "connect_timeout", "sslmode",
       "sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile", "krbsrvname", "channel_binding",
       "application_name", "service", "gssencmode", "ssl_min_protocol_version"});
}

// If no root certificates were given: the user's own, where libpq looks for
// them, else the system's.
std::string root_certificates() {
  if (const char* home = std::getenv("HOME"); home != nullptr) {
    std::string own = std::string(home) + "/.postgresql/root.crt";
    if (::access(own.c_str(), R_OK) == 0) return own;
  }
  return sql::system_authorities();
}

void add_missing(server_options& options, const std::string& key, const std::string& value) {
  const auto same = [&](const auto& each) { return each.first == key; };
  auto& all = options.parameters;
  if (value.empty() || std::any_of(all.begin(), all.end(), same)) return;
  all.emplace_back(key, value);
}

// libpq's own default would let any man in the middle turn encryption off.
void secure(server_options& options) {
  if (!options.leaves_machine()) return;
  add_missing(options, "sslmode", "verify-full");
  add_missing(options, "sslrootcert", root_certificates());
}

result<void> take_option(const std::string& key, const std::string& value, server_options& into) {
  if (key == "schema") {
    if (!is_schema_name(value)) {
      return failure(errc::invalid,
                     "URL: schema is 1 to 63 of a-z, 0-9 and _, and begins with no digit or pg_");
    }
    into.schema = value;
  } else if (key == "host") {
    if (!value.starts_with('/')) {
      return failure(errc::invalid, "URL: host= is for a folder of unix sockets");
    }
    if (!into.hosts.empty()) return failure(errc::invalid, "URL: two hosts, one as an option");
    into.hosts.push_back({value, 0});
  } else if (!sql::is_common(key)) {
    into.parameters.emplace_back(key, value);
  }
  return {};
}

}  // namespace

bool is_schema_name(std::string_view text) noexcept {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  const auto fine = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= identifier_limit && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), fine) && !text.starts_with("pg_");
}

result<server_options> options_from(const spi::url& url) {
  server_options options;
  if (auto known = check_known(url); !known) return tl::unexpected(std::move(known.error()));
  if (auto fine = sql::take_common(url, options); !fine) {
    return tl::unexpected(std::move(fine.error()));
  }
  if (options.database.find('\0') != std::string::npos) {
    return failure(errc::invalid, "URL: a database's name has no zero byte");
  }
  for (const auto& [key, value] : url.options) {
    if (auto fine = take_option(key, value, options); !fine) {
      return tl::unexpected(std::move(fine.error()));
    }
  }
  if (options.hosts.empty()) options.hosts.push_back({"/var/run/postgresql", 0});
  for (spi::endpoint& each : options.hosts) {
    if (each.port == 0) each.port = default_port;
  }
  secure(options);
  add_missing(options, "application_name", "holdfast");
  return options;
}

}  // namespace holdfast::postgresql
