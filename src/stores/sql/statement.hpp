// What is asked of a SQL server: the verbs of all strategies, under one name for every engine.
#pragma once

#include "stores/sql/answers.hpp"
#include "stores/sql/names.hpp"

#include <holdfast/spi/claim.hpp>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

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
  begin,  // PostgreSQL, as the next
  commit,
  listen,   // MariaDB, as the next
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

// As large as the column is.
inline std::int64_t limited(std::uint32_t number) {
  return std::min<std::uint32_t>(number, INT_MAX);
}

// `process`: by which the others know the client.
template <class Arguments>
Arguments attempt_arguments(const std::string& key, const spi::claim& claim,
                            const std::string& process) {
  Arguments with;
  with.bytes(key).bytes(bytes_of(claim.id)).text(spi::public_id(claim.id)).text(process);
  with.number(static_cast<std::int64_t>(claim.mode));
  with.number(limited(claim.permits)).number(limited(claim.max));
  with.flag(claim.fair).flag(claim.queued).flag(claim.renewed);
  with.number(microseconds(claim.ttl)).number(microseconds(claim.lock_delay));
  with.number(limited(std::max(claim.fence_block, 1U))).bytes(claim.payload);
  return with;
}

}  // namespace holdfast::sql
