#include "stores/sqlite/rows.hpp"

#include "stores/sqlite/database.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <type_traits>

namespace holdfast::sqlite {

namespace {

enum flag : std::uint8_t { fair = 1, renewed = 2, revoked = 4, offered = 8 };
// Flags of a resource. silence_follows: a silent_since follows it.
enum class told : std::uint8_t { head = 1, silence_follows = 2 };
constexpr bool is_set(std::uint8_t bits, told which) noexcept {
  return (bits & static_cast<std::uint8_t>(which)) != 0;
}

// The database never leaves its machine: native byte order.
struct packed_claim {
  std::uint8_t id[16];
  std::int64_t place;
  std::int64_t client;
  std::uint64_t fence;
  std::int64_t since;
  std::int64_t ends;
  std::int64_t ttl;
  std::int64_t lock_delay;
  std::uint32_t permits;
  std::uint32_t fence_block;
  std::uint8_t mode;
  std::uint8_t flags;
  std::uint16_t payload_size;
  std::uint32_t reserved;
};
static_assert(sizeof(packed_claim) == 88);
static_assert(std::has_unique_object_representations_v<packed_claim>);

struct packed_resource {
  std::uint8_t kind;
  std::uint8_t observed;
  std::uint8_t has_inline_holder;
  std::uint8_t told;
  std::uint32_t max;
  std::uint32_t holders;
  std::uint8_t exclusive;
  std::uint8_t in_line;
  std::uint16_t reserved;
  std::uint32_t waiting;
  std::uint32_t waiting_fair;
  std::uint32_t waiting_exclusive;
  std::uint32_t blocked_for_ms;
  std::uint64_t permits;
  std::int64_t next_end;
  std::int64_t blocked_until;
};
static_assert(sizeof(packed_resource) == 56);
static_assert(std::has_unique_object_representations_v<packed_resource>);

constexpr std::size_t max_payload = 1024;

constexpr spi::server_time time_of(std::int64_t number) noexcept {
  return spi::server_time(duration(number));
}
// 0: none.
constexpr std::int64_t number_or_none(spi::server_time time) noexcept {
  return time == ledgers::long_ago ? 0 : number_of(time);
}
constexpr spi::server_time time_or_none(std::int64_t number) noexcept {
  return number == 0 ? ledgers::long_ago : time_of(number);
}

template <class Packed>
void append(std::string& to, const Packed& packed) {
  to.append(reinterpret_cast<const char*>(&packed), sizeof packed);
}

template <class Packed>
Packed unpack(std::string_view body) {
  Packed packed{};
  if (body.size() < sizeof packed) {
    throw failed{{errc::unavailable, "sqlite, a row is damaged"}};
  }
  std::memcpy(&packed, body.data(), sizeof packed);
  return packed;
}

void append(std::string& to, const claim_row& row) {
  packed_claim packed{};
  std::copy(row.id.bytes.begin(), row.id.bytes.end(), packed.id);
  packed.place = row.place;
  packed.client = row.process;
  packed.fence = row.fence;
  packed.since = number_of(row.since);
  packed.ends = number_of(row.ends);
  packed.ttl = row.ttl.count();
  packed.lock_delay = row.lock_delay.count();
  packed.permits = row.permits;
  packed.fence_block = row.fence_block;
  packed.mode = static_cast<std::uint8_t>(row.mode);
  packed.flags = static_cast<std::uint8_t>(
      (row.fair ? flag::fair : 0) | (row.renewed ? flag::renewed : 0) |
      (row.revoked ? flag::revoked : 0) | (row.offer ? flag::offered : 0));
  packed.payload_size = static_cast<std::uint16_t>(std::min(row.payload.size(), max_payload));
  append(to, packed);
  to.append(row.payload, 0, packed.payload_size);
}

}  // namespace

std::size_t encoded_size(const claim_row& row) noexcept {
  return sizeof(packed_claim) + std::min(row.payload.size(), max_payload);
}

std::string encode(const claim_row& row) {
  std::string body;
  body.reserve(encoded_size(row));
  append(body, row);
  return body;
}

claim_row decode_claim(std::string_view body) {
  const auto packed = unpack<packed_claim>(body);
  claim_row row;
  std::copy(std::begin(packed.id), std::end(packed.id), row.id.bytes.begin());
  row.place = packed.place;
  row.process = packed.client;
  row.fence = packed.fence;
  row.since = time_of(packed.since);
  row.ends = time_of(packed.ends);
  row.ttl = duration(packed.ttl);
  row.lock_delay = duration(packed.lock_delay);
  row.permits = packed.permits;
  row.fence_block = packed.fence_block;
  row.mode = static_cast<spi::mode>(packed.mode);
  row.fair = (packed.flags & flag::fair) != 0;
  row.renewed = (packed.flags & flag::renewed) != 0;
  row.revoked = (packed.flags & flag::revoked) != 0;
  row.offer = (packed.flags & flag::offered) != 0;
  row.payload = body.substr(sizeof packed, packed.payload_size);
  return row;
}

std::size_t encoded_size(const resource_row& row) noexcept {
  std::size_t size =
      sizeof(packed_resource) + (row.inline_holder ? encoded_size(*row.inline_holder) : 0);
  if (row.silent_since != ledgers::long_ago) size += sizeof(std::int64_t);
  for (const claim_row& waiter : row.line) size += encoded_size(waiter);
  return size;
}

std::string encode(const resource_row& row) {
  packed_resource packed{};
  packed.kind = static_cast<std::uint8_t>(row.kind);
  packed.observed = row.observed ? 1 : 0;
  packed.has_inline_holder = row.inline_holder ? 1 : 0;
  if (row.head_told) packed.told |= static_cast<std::uint8_t>(told::head);
  if (row.silent_since != ledgers::long_ago)
    packed.told |= static_cast<std::uint8_t>(told::silence_follows);
  packed.max = row.max;
  packed.holders = row.holders;
  packed.exclusive = static_cast<std::uint8_t>(row.exclusive);
  packed.in_line = static_cast<std::uint8_t>(row.line.size());
  packed.waiting = row.waiting;
  packed.waiting_fair = row.waiting_fair;
  packed.waiting_exclusive = row.waiting_exclusive;
  packed.permits = row.permits;
  packed.next_end = number_of(row.next_end);
  packed.blocked_until = number_or_none(row.blocked_until);
  packed.blocked_for_ms = static_cast<std::uint32_t>(
      std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(row.blocked_for).count(),
                             std::numeric_limits<std::uint32_t>::max()));
  std::string body;
  body.reserve(std::max(row.stored_body.size(), encoded_size(row)));
  append(body, packed);
  if (row.silent_since != ledgers::long_ago) append(body, number_of(row.silent_since));
  if (row.inline_holder) append(body, *row.inline_holder);
  for (const claim_row& waiter : row.line) append(body, waiter);
  if (body.size() < row.stored_body.size()) body.resize(row.stored_body.size());
  return body;
}

resource_row row_in(const query& found) {
  resource_row row;
  row.id = found.number(0);
  row.key = found.blob(1);
  row.last = static_cast<std::uint64_t>(found.number(2));
  std::string_view body = found.blob(3);
  const auto packed = unpack<packed_resource>(body);
  row.kind = static_cast<kind>(packed.kind);
  row.observed = packed.observed != 0;
  row.head_told = is_set(packed.told, told::head);
  row.max = packed.max;
  row.holders = packed.holders;
  row.exclusive = packed.exclusive;
  row.waiting = packed.waiting;
  row.waiting_fair = packed.waiting_fair;
  row.waiting_exclusive = packed.waiting_exclusive;
  row.permits = packed.permits;
  row.next_end = time_of(packed.next_end);
  row.blocked_until = time_or_none(packed.blocked_until);
  row.blocked_for = std::chrono::milliseconds(packed.blocked_for_ms);
  body.remove_prefix(sizeof packed);
  if (is_set(packed.told, told::silence_follows)) {
    row.silent_since = time_of(unpack<std::int64_t>(body));
    body.remove_prefix(sizeof(std::int64_t));
  }
  const auto next = [&body] {
    claim_row claim = decode_claim(body);
    body.remove_prefix(std::min(body.size(), encoded_size(claim)));
    return claim;
  };
  if (packed.has_inline_holder != 0) row.inline_holder = next();
  row.line.reserve(packed.in_line);
  for (int left = packed.in_line; left > 0; --left) row.line.push_back(next());
  return row;
}

}  // namespace holdfast::sqlite
