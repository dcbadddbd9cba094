#include "stores/sql/options.hpp"

#include "net/time_option.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace holdfast::sql {

namespace {

constexpr std::size_t connection_limit = 64;

result<void> take_option(const std::string& key, const std::string& value, server_options& into) {
  if (key == "connections") {
    std::size_t count = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (problem != std::errc{} || end != value.data() + value.size() || count == 0 ||
        count > connection_limit) {
      return failure(errc::invalid, "URL: connections is a number from 1 to 64");
    }
    into.connections = count;
  } else if (key == "pooler") {
    if (value != "session") {
      return failure(errc::invalid, "URL: pooler can only be session; locks need whole sessions");
    }
    into.pooler_is_fine = true;
  } else if (key == "strategy") {
    const auto which = strategy_named(value);
    if (!which) return failure(errc::invalid, "URL: strategy is lease, session or row");
    into.strategy = *which;
  }
  return {};
}

}  // namespace

std::string server_options::text(std::string_view engine) const {
  std::string text(engine);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const bool six = hosts[i].host.find(':') != std::string::npos;
    text += (i == 0 ? " " : ",") + (six ? "[" + hosts[i].host + "]" : hosts[i].host);
    if (hosts[i].port != 0) text += ":" + std::to_string(hosts[i].port);
  }
  return database.empty() ? text : text + "/" + database;
}

bool server_options::leaves_machine() const {
  return std::ranges::any_of(hosts, [](const spi::endpoint& each) {
    const std::string& host = each.host;
    return !host.starts_with('/') && host != "localhost" && host != "::1" &&
           !host.starts_with("127.");
  });
}

bool is_common(std::string_view option) noexcept {
  constexpr std::array<std::string_view, 4> all{"connections", "pooler", "strategy",
                                                "connect_timeout"};
  return std::ranges::find(all, option) != all.end();
}

result<void> take_common(const spi::url& url, server_options& into) {
  into.hosts = url.hosts;
  into.user = url.user;
  into.password = url.password;
  into.database = url.path.empty() ? "" : url.path.substr(1);
  for (const auto& [key, value] : url.options) {
    if (auto fine = take_option(key, value, into); !fine) return fine;
  }
  const auto limit = net::connect_timeout(url);
  if (!limit) return tl::unexpected(limit.error());
  into.connect_limit = limit->value_or(into.connect_limit);
  // Each of them is a lock that can be held.
  if (into.strategy == strategy::row && !url.options.contains("connections")) {
    into.connections = default_row_connections;
  }
  return {};
}

std::string system_authorities() {
  constexpr const char* system = "/etc/ssl/certs/ca-certificates.crt";
  return ::access(system, R_OK) == 0 ? system : "";
}

}  // namespace holdfast::sql
