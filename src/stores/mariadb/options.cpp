#include "stores/mariadb/options.hpp"

#include "net/time_option.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace holdfast::mariadb {

namespace {

constexpr std::size_t connection_limit = 64;
constexpr std::size_t prefix_limit = 32;
constexpr std::size_t database_limit = 64;  // of the server: characters

bool is_near(const std::string& host) {
  return host.starts_with('/') || host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Where no authorities were named: the system's.
std::string root_certificates() {
  constexpr const char* system = "/etc/ssl/certs/ca-certificates.crt";
  return ::access(system, R_OK) == 0 ? system : "";
}

std::optional<tls_mode> mode_named(std::string_view name) {
  constexpr std::pair<std::string_view, tls_mode> modes[]{
      {"disabled", tls_mode::disabled},
      {"required", tls_mode::required},
      {"verify_identity", tls_mode::verified},
  };
  for (const auto& [text, mode] : modes) {
    if (text == name) return mode;
  }
  return std::nullopt;
}

std::optional<std::size_t> number(const std::string& text, std::size_t most) {
  std::size_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value == 0 || value > most) {
    return std::nullopt;
  }
  return value;
}

result<void> check_known(const spi::url& url) {
  return spi::check_options(
      url, {"strategy", "prefix", "connections", "pooler", "socket", "defaults_file",
            "connect_timeout", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key"});
}

struct taken {
  std::optional<tls_mode> tls;
};

result<void> take_connection_option(const std::string& key, const std::string& value,
                                    server_options& into) {
  if (key == "connections") {
    const auto count = number(value, connection_limit);
    if (!count) return failure(errc::invalid, "URL: connections is a number from 1 to 64");
    into.connections = *count;
  } else if (key == "pooler") {
    if (value != "session") {
      return failure(errc::invalid, "URL: pooler=session is the only proxy that locks can stand");
    }
    into.pooler_is_fine = true;
  } else if (key == "socket") {
    if (!value.starts_with('/')) {
      return failure(errc::invalid, "URL: socket= is the path of a unix socket");
    }
    if (!into.hosts.empty()) return failure(errc::invalid, "URL: a host and a socket");
    into.hosts.push_back({value, 0});
  }
  return {};
}

result<void> take_option(const std::string& key, const std::string& value, server_options& into,
                         taken& also) {
  if (key == "prefix") {
    if (!is_prefix(value)) {
      return failure(errc::invalid,
                     "URL: prefix is 1 to 32 of a-z, 0-9 and _, and begins with a letter");
    }
    into.prefix = value;
  } else if (key == "strategy") {
    const auto which = sql::strategy_named(value);
    if (!which) return failure(errc::invalid, "URL: strategy is lease, session or row");
    into.strategy = *which;
  } else if (key == "ssl_mode") {
    also.tls = mode_named(value);
    if (!also.tls) {
      return failure(errc::invalid, "URL: ssl_mode is disabled, required or verify_identity");
    }
  } else if (key == "ssl_ca") {
    into.tls_authorities = value;
  } else if (key == "ssl_cert") {
    into.tls_certificate = value;
  } else if (key == "ssl_key") {
    into.tls_key = value;
  } else if (key == "defaults_file") {
    into.defaults = value;
  } else {
    return take_connection_option(key, value, into);
  }
  return {};
}

// A name that leaves this machine is encrypted and its server is checked, unless the user says
// otherwise: libmariadb's own default would let anybody in between read everything.
void secure(server_options& options, const taken& also) {
  const bool far = std::any_of(options.hosts.begin(), options.hosts.end(),
                               [](const auto& each) { return !is_near(each.host); });
  const bool named = !options.tls_authorities.empty() || !options.tls_certificate.empty();
  options.tls = also.tls.value_or(far || named ? tls_mode::verified : tls_mode::disabled);
  if (options.tls == tls_mode::verified && options.tls_authorities.empty()) {
    options.tls_authorities = root_certificates();
  }
}

}  // namespace

bool is_prefix(std::string_view text) noexcept {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto fine = [&](char c) { return letter(c) || c == '_' || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= prefix_limit && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), fine);
}

std::string server_options::text() const {
  std::string text = "mariadb ";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const bool six = hosts[i].host.find(':') != std::string::npos;
    text += (i == 0 ? "" : ",") + (six ? "[" + hosts[i].host + "]" : hosts[i].host);
    if (!hosts[i].host.starts_with('/')) text += ":" + std::to_string(hosts[i].port);
  }
  return text + "/" + database;
}

result<server_options> options_from(const spi::url& url) {
  server_options options;
  options.hosts = url.hosts;
  options.user = url.user;
  options.password = url.password;
  options.database = url.path.empty() ? "" : url.path.substr(1);
  if (options.database.empty() || options.database.size() > database_limit ||
      options.database.find_first_of(std::string_view("\0`/", 3)) != std::string::npos) {
    return failure(errc::invalid,
                   "URL: a database is missing; written " + url.scheme + "://USER@HOST/DATABASE");
  }
  if (auto known = check_known(url); !known) return tl::unexpected(std::move(known.error()));
  taken also;
  for (const auto& [key, value] : url.options) {
    if (auto fine = take_option(key, value, options, also); !fine) {
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
  if (options.hosts.empty()) {
    return failure(errc::invalid, "URL: a host is missing; written " + url.scheme +
                                      "://USER@HOST/DATABASE, or with ?socket=PATH");
  }
  for (spi::endpoint& each : options.hosts) {
    if (each.port == 0) each.port = default_port;
  }
  secure(options, also);
  return options;
}

}  // namespace holdfast::mariadb
