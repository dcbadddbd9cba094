#include "stores/mariadb/server_error.hpp"

#include <algorithm>
#include <array>

namespace holdfast::mariadb {

namespace {

enum class meaning : std::uint8_t { passing, again, passing_ends, denied, missing, unsupported };

struct rule {
  unsigned code;
  meaning what;
};

constexpr std::array rules{
    rule{1213, meaning::again},                  // deadlock
    rule{1205, meaning::again},                  // lock wait timeout
    rule{er_query_interrupted, meaning::again},  // KILL QUERY
    rule{1020, meaning::again},                  // the record has changed since it was read
    rule{1044, meaning::denied},                 // database
    rule{1045, meaning::denied},                 // user
    rule{1142, meaning::denied},                 // table
    rule{1143, meaning::denied},                 // column
    rule{1227, meaning::denied},                 // a privilege
    rule{1370, meaning::denied},                 // routine
    rule{1290, meaning::passing_ends},           // --read-only: find the primary
    rule{1792, meaning::passing_ends},           // read-only transaction
    rule{1836, meaning::passing_ends},           // read-only mode
    rule{1053, meaning::passing_ends},           // shutting down
    rule{1927, meaning::passing_ends},           // KILL
    rule{1047, meaning::passing_ends},           // not ready
    rule{1243, meaning::passing_ends},           // a prepared statement that the session has lost
    rule{er_no_such_table, meaning::missing},    // a table
    rule{1305, meaning::missing},                // a procedure
    rule{1049, meaning::missing},                // the database
    rule{1046, meaning::missing},                // the database, dropped meanwhile
    rule{1665, meaning::unsupported},            // binlog_format=STATEMENT
    rule{1235, meaning::unsupported},            // said by our own procedures
};

// libmariadb's own errors begin here: the connection is broken.
constexpr unsigned first_client_error = 2000;
constexpr unsigned last_client_error = 2999;

meaning meaning_of(unsigned code) {
  if (code >= first_client_error && code <= last_client_error) return meaning::passing_ends;
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const rule& each) { return each.code == code; });
  return found == rules.end() ? meaning::passing : found->what;
}

std::string said(unsigned code, std::string_view message) {
  return std::string(message.substr(0, message.find('\n'))) + " (" + std::to_string(code) + ")";
}

}  // namespace

server_error to_error(unsigned code, std::string_view message, std::string_view where,
                      std::string_view during) {
  std::string text = std::string(where) + ", " + std::string(during) + ": " + said(code, message);
  switch (meaning_of(code)) {
    case meaning::denied:
      return {{errc::denied, text + "; `holdfast doctor` prints what to grant"}, true, false};
    case meaning::missing:
      return {{errc::unavailable,
               text + "; the tables were changed or dropped meanwhile, or another build of "
                      "holdfast made them: drop them, or choose another prefix"},
              true,
              false};
    case meaning::unsupported:
      return {{errc::unsupported, std::move(text)}, true, false};
    case meaning::passing_ends:
      return {{errc::unavailable, std::move(text)}, true, false};
    case meaning::again:
      return {{errc::unavailable, std::move(text)}, false, true};
    case meaning::passing:
      break;
  }
  return {{errc::unavailable, std::move(text)}, false, false};
}

error connect_error(unsigned code, std::string_view message, std::string_view where) {
  // user, database, unknown database, host, a password that is needed, a missing plugin
  constexpr std::array refusals{1044U, 1045U, 1049U, 1130U, 1131U, 1698U, 2059U, 2061U};
  constexpr unsigned tls_failed = 2026;
  // A handshake that was cut off has the same number.
  const bool about_trust = message.find("certificate") != std::string_view::npos ||
                           message.find("verif") != std::string_view::npos ||
                           message.find("does not support it") != std::string_view::npos;
  const bool refused = std::find(refusals.begin(), refusals.end(), code) != refusals.end() ||
                       (code == tls_failed && about_trust);
  return {refused ? errc::denied : errc::unavailable,
          std::string(where) + ", connect: " + said(code, message)};
}

}  // namespace holdfast::mariadb
