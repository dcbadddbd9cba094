#include "stores/sql/checks.hpp"

#include <charconv>
#include <utility>

namespace holdfast::sql {

namespace {

using status = spi::check::status;

}  // namespace

facts::facts(const rows& answer) {
  for (const std::string& line : answer) {
    const std::size_t space = line.find(' ');
    if (space != std::string::npos) known_.emplace(line.substr(0, space), line.substr(space + 1));
  }
}

std::string facts::text(std::string_view key) const {
  const auto found = known_.find(key);
  return found == known_.end() ? "?" : found->second;
}

long facts::number(std::string_view key) const {
  const std::string digits = text(key);
  long value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

bool facts::is_off(std::string_view key) const {
  const std::string value = text(key);
  return value == "OFF" || value == "off" || value == "0";
}

spi::check room(const facts& known, std::size_t wanted) {
  const long used = known.number("connections");
  const long most = known.number("max_connections");
  spi::check check{"connections", status::ok,
                   std::to_string(used) + " of " + std::to_string(most) +
                       " in use; a client takes up to " + std::to_string(wanted),
                   ""};
  if (used + static_cast<long>(wanted) > most) {
    check.state = status::warn;
    check.remedy = "raise max_connections, or use fewer: connections=1 in the URL";
  }
  return check;
}

spi::check bound_check(strategy which) {
  return {"strategy", status::ok,
          std::string(name_of(which)) +
              ": a hold ends with its connection, and is believed for 30 s at most after the last "
              "answer on it",
          ""};
}

spi::check tls_check(bool encrypted) {
  return {"tls", status::ok,
          encrypted ? "the connection is encrypted" : "the connection is not encrypted", ""};
}

spi::check wakeup_check(bool hears, std::string means) {
  if (hears) return {"wake-ups", status::ok, std::move(means), ""};
  return {"wake-ups", status::warn, "the connection for wake-ups is not open yet",
          "waiters then look once a second"};
}

}  // namespace holdfast::sql
