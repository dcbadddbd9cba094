#include "stores/postgresql/server_error.hpp"

#include <algorithm>
#include <array>

namespace holdfast::postgresql {

namespace {

enum class meaning { passing, passing_ends, denied, missing, unsupported };

struct rule {
  std::string_view state;  // a SQLSTATE, or its prefix
  meaning what;
};

// The first that matches.
constexpr std::array rules{
    rule{"42501", meaning::denied},        // insufficient privilege
    rule{"28", meaning::denied},           // authorization
    rule{"25006", meaning::passing_ends},  // a standby, or switched to read-only: find the primary
    rule{"26000", meaning::passing_ends},  // the prepared statement is gone: DISCARD, or a pooler
    rule{"3F000", meaning::missing},       // the schema
    rule{"42P01", meaning::missing},       // a table
    rule{"42883", meaning::missing},       // a function
    rule{"0A000", meaning::unsupported},   // not supported
    rule{"57P", meaning::passing_ends},    // shutting down, crashed, starting up
    rule{"08", meaning::passing_ends},     // connection
    rule{"XX", meaning::passing_ends},     // internal, or data corrupted
};

meaning meaning_of(std::string_view state) {
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [&](const rule& each) { return state.starts_with(each.state); });
  return found == rules.end() ? meaning::passing : found->what;
}

}  // namespace

std::string first_line(std::string_view message) {
  std::string line(message.substr(0, message.find('\n')));
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
  return line;
}

server_error to_error(const PGresult* failed, std::string_view where, std::string_view during) {
  const char* code = PQresultErrorField(failed, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(failed, PG_DIAG_MESSAGE_PRIMARY);
  const std::string_view state = code != nullptr ? code : "";
  std::string text(where);
  text += ", ";
  text += during;
  text += ": ";
  text += message != nullptr ? first_line(message) : first_line(PQresultErrorMessage(failed));
  if (!state.empty()) text += " (" + std::string(state) + ")";
  // The table of locks is full, and this was one too many: it stays full while they are held.
  if (state == "53200" && during == "session_attempt") {
    return {{errc::overloaded, text + "; raise max_locks_per_transaction"}, false};
  }
  switch (meaning_of(state)) {
    case meaning::denied:
      return {{errc::denied, text + "; `holdfast doctor` prints what to grant"}, true};
    case meaning::missing:
      return {
          {errc::unavailable, text + "; the schema was changed or dropped meanwhile, or another "
                                     "build of holdfast made it: drop it, or name another one"},
          true};
    case meaning::unsupported:
      return {{errc::unsupported, std::move(text)}, true};
    case meaning::passing_ends:
      return {{errc::unavailable, std::move(text)}, true};
    case meaning::passing:
      break;
  }
  return {{errc::unavailable, std::move(text)}, false};
}

error connect_error(std::string_view message, std::string_view where) {
  constexpr std::array refusals{std::string_view("password authentication failed"),
                                std::string_view("no pg_hba.conf entry"),
                                std::string_view("no password supplied"),
                                std::string_view("does not exist"),
                                std::string_view("permission denied"),
                                std::string_view("authentication failed"),
                                std::string_view("certificate"),
                                std::string_view("does not support SSL"),
                                std::string_view("is not permitted to log in")};
  const bool refused = std::any_of(refusals.begin(), refusals.end(), [&](std::string_view each) {
    return message.find(each) != std::string_view::npos;
  });
  // A socket path that does not exist means that the server is down.
  const bool absent = message.find("No such file or directory") != std::string_view::npos &&
                      message.find("certificate") == std::string_view::npos;
  return {refused && !absent ? errc::denied : errc::unavailable,
          std::string(where) + ", connect: " + first_line(message)};
}

}  // namespace holdfast::postgresql
