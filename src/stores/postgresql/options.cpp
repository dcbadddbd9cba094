#include "stores/postgresql/options.hpp"

#include "net/time_option.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace holdfast::postgresql {

namespace {

constexpr std::size_t connection_limit = 64;
constexpr std::size_t identifier_limit = 63;

// Our own, and those that are given to libpq as they are.
result<void> check_known(const spi::url& url) {
  return spi::check_options(
      url,
      {"strategy", "schema", "connections", "pooler", "host", "connect_timeout", "sslmode",
       "sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile", "krbsrvname", "channel_binding",
       "application_name", "service", "gssencmode", "ssl_min_protocol_version"});
}

bool is_near(const std::string& host) {
  return host.starts_with('/') || host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Where no root certificates were named: the user's own as libpq looks for them, else the system's.
std::string root_certificates() {
  if (const char* home = std::getenv("HOME"); home != nullptr) {
    std::string own = std::string(home) + "/.postgresql/root.crt";
    if (::access(own.c_str(), R_OK) == 0) return own;
  }
  constexpr const char* system = "/etc/ssl/certs/ca-certificates.crt";
  return ::access(system, R_OK) == 0 ? system : "";
}

void add_missing(server_options& options, const std::string& key, const std::string& value) {
  const auto same = [&](const auto& each) { return each.first == key; };
  auto& all = options.parameters;
  if (value.empty() || std::any_of(all.begin(), all.end(), same)) return;
  all.emplace_back(key, value);
}

// A name that leaves this machine is encrypted and its server is checked, unless the user says
// otherwise: libpq's own default would let anybody in between turn encryption off.
void secure(server_options& options) {
  const bool far = std::any_of(options.hosts.begin(), options.hosts.end(),
                               [](const auto& each) { return !is_near(each.host); });
  if (!far) return;
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
  } else if (key == "connections") {
    std::size_t count = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (problem != std::errc{} || end != value.data() + value.size() || count == 0 ||
        count > connection_limit) {
      return failure(errc::invalid, "URL: connections is a number from 1 to 64");
    }
    into.connections = count;
  } else if (key == "pooler") {
    if (value != "session") {
      return failure(errc::invalid, "URL: pooler=session is the only pooler that locks can stand");
    }
    into.pooler_is_fine = true;
  } else if (key == "strategy") {
    const auto which = sql::strategy_named(value);
    if (!which) return failure(errc::invalid, "URL: strategy is lease, session or row");
    into.strategy = *which;
  } else if (key == "host") {
    if (!value.starts_with('/')) {
      return failure(errc::invalid, "URL: host= is for a folder of unix sockets");
    }
    if (!into.hosts.empty()) return failure(errc::invalid, "URL: two hosts, one as an option");
    into.hosts.push_back({value, 0});
  } else if (key != "connect_timeout") {
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

std::string server_options::text() const {
  std::string text = "postgresql ";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const bool six = hosts[i].host.find(':') != std::string::npos;
    text += (i == 0 ? "" : ",") + (six ? "[" + hosts[i].host + "]" : hosts[i].host) + ":" +
            std::to_string(hosts[i].port);
  }
  return database.empty() ? text : text + "/" + database;
}

result<server_options> options_from(const spi::url& url) {
  server_options options;
  options.hosts = url.hosts;
  options.user = url.user;
  options.password = url.password;
  options.database = url.path.empty() ? "" : url.path.substr(1);
  if (options.database.find('\0') != std::string::npos) {
    return failure(errc::invalid, "URL: a database's name has no zero byte");
  }
  if (auto known = check_known(url); !known) return tl::unexpected(std::move(known.error()));
  for (const auto& [key, value] : url.options) {
    if (auto fine = take_option(key, value, options); !fine) {
      return tl::unexpected(std::move(fine.error()));
    }
  }
  const auto limit = net::connect_timeout(url);
  if (!limit) return tl::unexpected(limit.error());
  options.connect_limit = limit->value_or(options.connect_limit);
  // Each of them is a lock that can be held.
  if (options.strategy == sql::strategy::row && !url.options.contains("connections")) {
    options.connections = sql::default_row_connections;
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
