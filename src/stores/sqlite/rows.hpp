// What the database holds of claims and resources. The bodies of both are packed into one column
// each: unpacked into columns they cost a fifth more per lock (see docs/decisions). The layout is
// in docs/formats/embedded.md and belongs to the schema's version.
#pragma once

#include "stores/sql/names.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sqlite {

// Nanoseconds of CLOCK_BOOTTIME; `never` for what has no end.
using instant = std::int64_t;
inline constexpr instant never = INT64_MAX;
inline instant now() { return clock::now().time_since_epoch().count(); }

// A deadline that cannot overflow.
constexpr instant after(instant now, duration wait) noexcept {
  return wait.count() >= never - now ? never : now + wait.count();
}

using sql::key_of;
using sql::resource_of;
using sql::space_of;

enum class kind : std::uint8_t { idle = 0, lock = 1, semaphore = 2, latch = 3 };

// Whose a detached claim is: no client has this number.
inline constexpr std::int64_t nobody = 0;

// The values are in the database.
enum class standing : std::int64_t { holds = 1, waits = 2 };

struct claim_row {
  spi::claim_id id;
  std::int64_t place = 0;   // its number in the line of its resource
  std::int64_t client = 0;  // whose it is
  std::uint64_t fence = 0;
  instant since = 0;     // queued, then granted
  instant ends = never;  // of an offer, and of a hold that is not renewed, or not any more
  std::int64_t ttl = 0;
  std::int64_t lock_delay = 0;
  std::uint32_t permits = 1;
  std::uint32_t fence_block = 1;
  spi::mode mode = spi::mode::exclusive;
  bool fair = false;
  bool renewed = true;
  bool revoked = false;
  bool offer = false;  // handed over, and not yet taken up
  std::string payload;
};

std::string encode(const claim_row& row);
std::size_t encoded_size(const claim_row& row) noexcept;
claim_row decode_claim(std::string_view body);

struct resource_row {
  std::int64_t id = 0;
  std::string key;
  std::uint64_t last = 0;  // the last fence or place that was given
  sqlite::kind kind = kind::idle;
  bool observed = false;  // somebody wants its events
  std::uint32_t max = 0;  // of a semaphore
  std::uint32_t holders = 0;
  std::uint32_t exclusive = 0;  // of the holders: at most one
  std::uint32_t waiting = 0;
  std::uint32_t waiting_fair = 0;
  std::uint32_t waiting_exclusive = 0;
  bool head_told = false;     // that it is free, since it was last taken
  std::uint64_t permits = 0;  // of all holders
  instant next_end = never;   // no hold ends before; of a latch: its end
  // When the last offer was made that nobody took up, while somebody waits: who was not heard since
  // is passed over. 0: none.
  instant silent_since = 0;
  instant blocked_until = 0;  // after an abnormal end
  duration blocked_for{0};    // how long that was from its beginning
  // One holder has its place in here, so that to take and to give back an uncontended lock each
  // write a single page. Further holders are rows of their own.
  std::optional<claim_row> inline_holder;
  // Likewise the first of those who wait, in their order, so that to queue behind a few and to hand
  // over to the next each write that same page. The others, all behind them, are rows of their own.
  std::vector<claim_row> line;

  bool dirty = false;  // differs from what is in the database
  // What is in the database.
  std::uint64_t stored_last = 0;
  std::string stored_body;

  [[nodiscard]] bool unused() const noexcept { return holders == 0 && waiting == 0; }
  // It is all there is of the resource: no row of another table belongs to it, nobody is to be told.
  [[nodiscard]] bool plain() const noexcept {
    return waiting == 0 && holders == (inline_holder ? 1U : 0U) && !observed && kind != kind::latch;
  }
};

// 0 where the clock is before 1970.
std::uint64_t wall_clock_microseconds() noexcept;

// Reserves `block` numbers and answers the first. Microseconds of the wall clock are a floor, so that
// fences go on after a restored backup.
std::uint64_t next_fence(resource_row& at, std::uint32_t block);

// For the lock delay of a holder that ended abnormally; none is 0.
inline void block(resource_row& at, duration delay, instant since) noexcept {
  if (delay <= duration{0} || after(since, delay) <= at.blocked_until) return;
  at.blocked_until = after(since, delay);
  at.blocked_for = delay;
  at.dirty = true;
}

// At least as long as what is stored: SQLite writes a row of the same size in place, so a lock that
// is taken and given back again and again is not moved about in its page.
std::string encode(const resource_row& row);
std::size_t encoded_size(const resource_row& row) noexcept;
// Fills in what encode() packed.
void decode_resource(std::string_view body, resource_row& row);

}  // namespace holdfast::sqlite
