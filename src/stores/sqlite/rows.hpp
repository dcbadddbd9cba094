// The stored form of claims and resources. The bodies of both are packed into one column each:
// split into columns they cost a fifth more per lock (see docs/decisions). The layout is in
// docs/formats/embedded.md and belongs to the schema's version.
#pragma once

#include "stores/ledger/records.hpp"
#include "stores/sql/common/names.hpp"

#include <holdfast/spi/store.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sqlite {

class query;

// Times are those of CLOCK_BOOTTIME; as numbers, its nanoseconds.
inline spi::server_time now() { return spi::server_time(clock::now().time_since_epoch()); }
constexpr std::int64_t number_of(spi::server_time time) noexcept {
  return time.time_since_epoch().count();
}
inline constexpr std::int64_t no_limit = INT64_MAX;

using sql::key_of;
using sql::resource_of;
using sql::space_of;

using ledgers::after;
using ledgers::kind;
using ledgers::never;
using ledgers::nobody;

// The values are in the database.
enum class standing : std::int64_t { holds = 1, waits = 2 };

using claim_row = ledgers::entry;

std::string encode(const claim_row& row);
std::size_t encoded_size(const claim_row& row) noexcept;
claim_row decode_claim(std::string_view body);

// `last` is also the last place that was given.
struct resource_row : ledgers::resource {
  std::int64_t id = 0;
  std::string key;
  bool head_told = false;  // the head was notified that it is free, since it was last taken
  // One holder is stored here, so that taking and releasing an uncontended lock each write a single
  // page. Further holders have their own rows.
  std::optional<claim_row> inline_holder;
  // Likewise the first waiters, in their order, so that queueing behind a few and handing over to
  // the next each write that same page. The others, all behind them, have their own rows.
  std::vector<claim_row> line;

  // What is in the database.
  std::uint64_t stored_last = 0;
  std::string stored_body;

  // It is all there is of the resource: no row of another table belongs to it, and
  // nobody must be notified.
  [[nodiscard]] bool plain() const noexcept {
    return waiting == 0 && holders == (inline_holder ? 1U : 0U) && !observed && kind != kind::latch;
  }
};

// A floor for fences, so that they keep growing after a backup is restored. 0 if
// the clock is before 1970.
inline std::uint64_t wall_clock_microseconds() noexcept {
  return ledgers::microseconds(std::chrono::system_clock::now().time_since_epoch());
}

// At least as long as what is stored: SQLite writes a row of the same size in place, so a lock that
// is taken and released repeatedly does not move within its page.
std::string encode(const resource_row& row);
std::size_t encoded_size(const resource_row& row) noexcept;
// From a statement's id, key, last and body.
resource_row row_in(const query& found);

}  // namespace holdfast::sqlite
