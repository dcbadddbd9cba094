// Who says how long a hold lasts: its end by the server's clock, or a connection's life.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::sql {

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

// How many connections a client takes at most; `asked`: connections=N of its URL.
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

// strategy=row: how many locks a client can hold at once, where the URL does not say.
inline constexpr std::size_t default_row_connections = 16;

}  // namespace holdfast::sql
