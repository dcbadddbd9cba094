// The statements for a SQL server: the verbs of all strategies, under one name for every
// engine, and their arguments.
#pragma once

#include "stores/sql/answers.hpp"
#include "stores/sql/common/names.hpp"

#include <holdfast/spi/claim.hpp>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sql {

enum class statement : std::uint8_t {
  attempt,
  leave,
  renew,
  change,
  transfer,
  inspect,
  list,
  revoke,
  change_latch,
  read_latch,
  interest,
  ignore,
  examine,
  session_attempt,
  session_leave,
  session_renew,
  bound_inspect,
  bound_list,
  bound_revoke,
  bound_forced,
  rollback,
  row_take,
  row_end,
  row_beat,
  row_make,
  row_record,
  row_queue,
  row_leave,
  row_renew,
  begin,  // PostgreSQL, like the next
  commit,
  listen,   // MariaDB, like the next
  discard,  // messages that were read
};

// In the order of the enumeration.
inline constexpr std::array statement_names{
    "attempt",       "leave",         "renew",      "change",          "transfer",
    "inspect",       "list",          "revoke",     "change_latch",    "read_latch",
    "interest",      "ignore",        "examine",    "session_attempt", "session_leave",
    "session_renew", "bound_inspect", "bound_list", "bound_revoke",    "bound_forced",
    "rollback",      "row_take",      "row_end",    "row_beat",        "row_make",
    "row_record",    "row_queue",     "row_leave",  "row_renew",       "begin",
    "commit",        "listen",        "discard"};

// For messages: "attempt".
constexpr const char* name_of(statement which) noexcept {
  return statement_names[static_cast<std::size_t>(which)];
}

// Limited to the size of the column.
inline std::int64_t limited(std::uint32_t number) {
  return std::min<std::uint32_t>(number, INT_MAX);
}

// The arguments of one call, which each engine passes as its driver takes them: none can
// become part of the statement.
class arguments {
 public:
  enum class kind : std::uint8_t { bytes, text, number, list, numbers, home };
  struct one {
    kind what{};
    std::string value{};
    std::vector<std::string> values{};
  };

  arguments() { all_.reserve(usual); }

  arguments& bytes(std::string_view value) { return add({kind::bytes, std::string(value)}); }
  arguments& text(std::string_view value) { return add({kind::text, std::string(value)}); }
  arguments& number(std::int64_t value) { return add({kind::number, std::to_string(value)}); }
  arguments& flag(bool value) { return number(value ? 1 : 0); }
  arguments& list(std::vector<std::string> values) {
    return add({kind::list, {}, std::move(values)});
  }
  // MariaDB: as text that can be part of a statement: '0xff00,0xaa'.
  arguments& numbers(std::vector<std::string> values) {
    return add({kind::numbers, {}, std::move(values)});
  }
  arguments& home() {
    return add({kind::home});
  }  // the connection that sends it: filled in by its link

  [[nodiscard]] const std::vector<one>& all() const noexcept { return all_; }

 private:
  static constexpr std::size_t usual = 16;  // an attempt has 15

  arguments& add(one next) {
    all_.push_back(std::move(next));
    return *this;
  }

  std::vector<one> all_;
};

// What a link sends. `fast_path` (MariaDB): a statement that is tried first, unless it is
// empty. If it changes a row, the answer is a row with its number alone; if it changes
// none, the whole call is made.
struct call {
  statement which{};
  arguments with{};
  std::string fast_path{};
};

// `process`: the others' name for this client.
arguments attempt_arguments(const std::string& key, const spi::claim& claim,
                            const std::string& process);

}  // namespace holdfast::sql
