// What the URLs of all SQL servers have in common: which server, as whom, over how many
// connections, and what ends a hold.
#pragma once

#include "net/backoff.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/url.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sql {

// By the server's clock, or with a connection.
enum class strategy : std::uint8_t {
  lease,    // rows with an end
  session,  // named locks of one connection
  row,      // rows locked by open transactions
};

constexpr const char* name_of(strategy which) noexcept {
  switch (which) {
    case strategy::lease:
      return "lease";
    case strategy::session:
      return "session";
    case strategy::row:
      break;
  }
  return "row";
}

constexpr std::optional<strategy> strategy_named(std::string_view name) noexcept {
  for (const strategy each : {strategy::lease, strategy::session, strategy::row}) {
    if (name == name_of(each)) return each;
  }
  return std::nullopt;
}

// How many connections a client uses at most; `asked`: connections=N of its URL.
constexpr std::size_t connections_of(strategy which, std::size_t asked) noexcept {
  switch (which) {
    case strategy::lease:
      return asked + 1;
    case strategy::session:
      return 3;  // holds, looks, wake-ups
    case strategy::row:
      break;
  }
  return asked + 2;
}

// strategy=row: how many locks a client can hold at once, if the URL does not say.
inline constexpr std::size_t default_row_connections = 16;

struct server_options {
  // Tried in turn until one accepts writes. One that begins with '/' is a unix socket, or a folder of them.
  std::vector<spi::endpoint> hosts;
  std::string user;      // empty: the driver's default
  spi::secret password;  // empty: the driver's default (a file, a certificate)
  std::string database;
  sql::strategy strategy = strategy::lease;
  // lease: for commands; row: how many locks can be held at once. Wake-ups have one more.
  std::size_t connections = 4;
  bool pooler_is_fine =
      false;  // a pooler or proxy that keeps a session on its server is in between
  duration connect_limit = std::chrono::seconds(5);  // resolve, connect, TLS, set-up together
  net::backoff_limits backoff{};

  // For messages: "mariadb db.example:3306/shop".
  [[nodiscard]] std::string text(std::string_view engine) const;
  // Some host is not this machine: that traffic is encrypted, and its server is verified, unless
  // the user says otherwise.
  [[nodiscard]] bool leaves_machine() const;
};

// Everything except the options of a single engine. invalid: a value out of its limits.
result<void> take_common(const spi::url& url, server_options& into);
// Whether take_common() reads this option.
bool is_common(std::string_view option) noexcept;

// The certificates that the system trusts: a file, or nothing.
std::string system_authorities();

}  // namespace holdfast::sql
