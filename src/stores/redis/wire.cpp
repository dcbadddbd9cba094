
#include "stores/redis/wire.hpp"

#include "core/hex.hpp"
#include "stores/redis/layout.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace holdfast::redis {

namespace {

constexpr std::size_t id_size = 16;
constexpr std::size_t process_size = 16;
constexpr std::size_t time_size = 8;
constexpr std::size_t blocked_size = 9;  // recheck after, queued; then the blocker
constexpr std::uint8_t offer_flag = 1;
constexpr std::uint8_t wanted_flag = 2;

double to_microseconds(duration time) noexcept {
  return static_cast<double>(std::chrono::duration_cast<microseconds>(time).count());
}

duration from_microseconds(double time) noexcept {
  return microseconds(static_cast<std::int64_t>(time));
}

std::string_view bytes_of(const spi::claim_id& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

spi::claim_id id_of(std::string_view bytes) noexcept {
  spi::claim_id id;
  std::copy_n(bytes.begin(), std::min(bytes.size(), id.bytes.size()), id.bytes.begin());
  return id;
}

// A claim as it was sent.
struct stored_claim {
  spi::claim_id id;
  std::uint32_t permits = 1;
  spi::mode mode = spi::mode::exclusive;
  std::string payload;
};

stored_claim read_claim(byte_reader& from) {
  stored_claim claim;
  claim.id = id_of(from.text(id_size));
  from.text(process_size);
  for (int i = 0; i < 4; ++i) from.real();  // not after, ttl, lock delay, offer
  from.number();                            // fence block
  claim.permits = from.number();
  from.number();  // max
  claim.mode = static_cast<spi::mode>(from.small());
  from.text(3);  // fair, queued, renewed
  claim.payload = from.counted();
  return claim;
}

}  // namespace

void byte_writer::grow(std::size_t size) { bytes_.resize(2 * bytes_.size() + size); }

std::string new_process_name(spi::runtime& runtime) { return core::hex_of(runtime.random()); }

spi::server_time to_server_time(std::int64_t microseconds_since_1970) noexcept {
  return spi::server_time(microseconds(microseconds_since_1970));
}

std::string claim_bytes(const spi::claim& claim, const sender& from, queueing how,
                        std::optional<spi::server_time> not_after) {
  constexpr std::size_t fixed = 82;
  byte_writer to(fixed + claim.payload.size());
  to.text(bytes_of(claim.id)).text(from.process);
  to.real(not_after ? to_microseconds(not_after->time_since_epoch()) : 0);
  to.real(to_microseconds(claim.ttl)).real(to_microseconds(claim.lock_delay));
  to.real(to_microseconds(std::min(from.offer, claim.ttl)));
  to.number(claim.fence_block).number(claim.permits).number(claim.max);
  to.small(static_cast<std::uint8_t>(claim.mode)).small(claim.fair ? 1 : 0);
  to.small(claim.queued && how == queueing::allowed ? 1 : 0).small(claim.renewed ? 1 : 0);
  to.counted(claim.payload);
  return to.take();
}

std::string leaving_bytes(const spi::claim& claim, const sender& from) {
  byte_writer to(40);
  return to.text(bytes_of(claim.id)).text(from.process).real(to_microseconds(claim.ttl)).take();
}

std::int64_t script_answer::number(std::size_t index) const noexcept {
  return fields != nullptr && index < fields->size() ? (*fields)[index].integer : 0;
}

std::string_view script_answer::text(std::size_t index) const noexcept {
  return fields != nullptr && index < fields->size() ? (*fields)[index].words()
                                                     : std::string_view();
}

result<script_answer> answer_of(const reply& from) {
  if (from.is(reply::type::integer)) {
    return script_answer{1, to_server_time(from.integer), nullptr, {}, from.repeated};
  }
  if (from.is(reply::type::string) && from.text.size() >= time_size + blocked_size) {
    const spi::server_time at(from_microseconds(byte_reader(from.text).real()));
    return script_answer{0, at, nullptr, std::string_view(from.text).substr(time_size),
                         from.repeated};
  }
  if (from.elements.size() < 2 || !from.elements[0].is(reply::type::integer) ||
      !from.elements[1].is(reply::type::integer)) {
    return failure(errc::unavailable, "unexpected reply");
  }
  return script_answer{from.elements[0].integer,
                       to_server_time(from.elements[1].integer),
                       &from.elements,
                       {},
                       from.repeated};
}

error refusal_of(const script_answer& from, const spi::claim* claim) {
  switch (from.number(2)) {
    case 1:
      return {errc::name_conflict, "the name is in use as a latch"};
    case 2:
      return {errc::lost, "left before"};
    case 3:
      return {errc::lost, "too late"};
    case 4:
      return {errc::name_conflict, claim != nullptr && claim->mode == spi::mode::permit
                                       ? "the name is in use as a lock"
                                       : "the name is in use as a semaphore"};
    case 5:
      return {errc::conflict, "max is " + std::to_string(from.number(3)) + " there and " +
                                  std::to_string(claim != nullptr ? claim->max : 0) + " here"};
    case 6:
      return {errc::invalid, std::to_string(claim != nullptr ? claim->permits : 0) +
                                 " permits of " +
                                 std::to_string(claim != nullptr ? claim->max : 0)};
    case 7:
      return {errc::overloaded, "claims on one name"};
    case 8:
      return {errc::name_conflict, "a value that is not holdfast's is under the key"};
    case 9:
      return {errc::unsupported, "the name is in use by another version of holdfast"};
    case 10:
      return {errc::lost, "not held any more"};
    case 11:
      return {errc::invalid, "a semaphore's permits have no other mode"};
    case 12:
      return {errc::would_deadlock, "other readers hold it"};
    case 13:
      return {errc::would_deadlock, "another reader's hold ended abnormally"};
    case 14:
      return {errc::name_conflict, "the name is in use as a lock or semaphore"};
    case 15:
      return {errc::conflict, "the latch is set, its count is " + std::to_string(from.number(3))};
    case 16:
      return {errc::not_held, "the latch is unset"};
    case 17:
      return {errc::name_conflict, "the name is in use as Redisson's read-write lock"};
    case 18:
      return {errc::not_held, "not held any more"};
    case 19:
      return {errc::name_conflict, "the name is in use as Redisson's lock"};
    default:
      return {errc::unavailable, "unexpected reply"};
  }
}

spi::granted granted_of(const script_answer& from, std::size_t first) {
  spi::granted grant;
  grant.fence = fence_token(static_cast<std::uint64_t>(from.number(first)));
  grant.ttl = microseconds(from.number(first + 1));
  grant.at = from.at;
  const auto flags = static_cast<std::uint64_t>(from.number(first + 2));
  grant.offer = (flags & offer_flag) != 0;
  grant.wanted = (flags & wanted_flag) != 0;
  return grant;
}

result<spi::outcome> outcome_of(const script_answer& from, const spi::claim& claim) {
  if (from.kind < 0) return tl::unexpected(refusal_of(from, &claim));
  if (from.kind == 1 && from.fields == nullptr) {
    spi::granted grant;
    const auto now = std::chrono::duration_cast<microseconds>(from.at.time_since_epoch());
    grant.fence = fence_token(static_cast<std::uint64_t>(now.count()));
    grant.ttl = std::chrono::duration_cast<microseconds>(claim.ttl);
    grant.at = from.at;
    return grant;
  }
  if (from.kind == 1) return granted_of(from, 2);
  spi::blocked blocked;
  blocked.at = from.at;
  if (from.fields == nullptr) {
    byte_reader packed(from.packed);
    blocked.recheck_after = from_microseconds(packed.real());
    blocked.queued = packed.small() == 1;
    blocked.blocker = from.packed.substr(blocked_size);
    return blocked;
  }
  blocked.queued = from.number(2) == 1;
  blocked.recheck_after = microseconds(from.number(3));
  blocked.blocker = from.text(4);
  return blocked;
}

spi::renewal renewal_of(const reply& from, spi::server_time at) {
  spi::renewal renewal;
  renewal.at = at;
  if (from.is_error()) renewal.why = from.text;
  if (from.elements.empty()) return renewal;
  const script_answer fields{from.elements[0].integer, at, &from.elements, {}};
  // A foreign value: whatever we had there is gone.
  renewal.state =
      fields.kind < 0 ? spi::hold_state::lost : static_cast<spi::hold_state>(fields.kind);
  if (renewal.state == spi::hold_state::renewed || renewal.state == spi::hold_state::held) {
    renewal.grant = granted_of(fields, 1);
  }
  if (renewal.state == spi::hold_state::waiting) {
    renewal.recheck_after = microseconds(fields.number(4));
  }
  return renewal;
}

std::optional<stored_holder> holder_of(std::string_view bytes, spi::server_time now) {
  byte_reader from(bytes);
  stored_holder found;
  found.shown.fence = fence_token(static_cast<std::uint64_t>(from.real()));
  found.shown.remaining = spi::server_time(from_microseconds(from.real())) - now;
  found.shown.held_for = now - spi::server_time(from_microseconds(from.real()));
  const auto mode = static_cast<spi::mode>(from.small() & 3U);
  const stored_claim claim = read_claim(from);
  if (!from.ok()) return std::nullopt;
  found.id = claim.id;
  found.shown.claim = spi::public_id(claim.id);
  found.shown.mode = mode;
  found.shown.permits = claim.permits;
  found.shown.payload = claim.payload;
  return found;
}

std::optional<spi::waiting> waiter_of(std::string_view bytes, spi::server_time now) {
  byte_reader from(bytes);
  spi::waiting waiting;
  waiting.waiting_for = now - spi::server_time(from_microseconds(from.real()));
  const stored_claim claim = read_claim(from);
  if (!from.ok()) return std::nullopt;
  waiting.claim = spi::public_id(claim.id);
  waiting.mode = claim.mode;
  waiting.permits = claim.permits;
  waiting.payload = claim.payload;
  return waiting;
}

std::vector<push> pushes_of(std::string_view message) {
  std::vector<push> found;
  byte_reader from(message);
  while (from.more()) {
    const std::string_view kind = from.text(1);
    push one;
    one.claim = id_of(from.text(id_size));
    if (kind == "g") {
      one.what = push::kind::granted;
      one.grant.fence = fence_token(static_cast<std::uint64_t>(from.real()));
      one.grant.ttl = from_microseconds(from.real());
      one.grant.at = spi::server_time(from_microseconds(from.real()));
      const std::uint8_t flags = from.small();
      one.grant.offer = (flags & offer_flag) != 0;
      one.grant.wanted = (flags & wanted_flag) != 0;
    } else if (kind == "w") {
      one.what = push::kind::wanted;
    } else if (kind == "n") {
      one.what = push::kind::gone;
      one.forced = from.small() == 1;
    } else {
      break;
    }
    if (!from.ok()) break;
    found.push_back(one);
  }
  return found;
}

std::optional<event_message> events_of(std::string_view message) {
  byte_reader from(message);
  const std::string_view tail = from.counted();
  const std::string_view written = from.counted();
  auto resource = resource_of(tail, written);
  if (!from.ok() || !resource) return std::nullopt;
  event_message found{*std::move(resource), {}};
  while (from.more()) {
    spi::store_event event;
    event.kind = static_cast<spi::event_kind>(from.small());
    event.mode = static_cast<spi::mode>(from.small());
    event.claim = spi::public_id(id_of(from.text(id_size)));
    const double fence = from.real();
    if (fence > 0) event.fence = fence_token(static_cast<std::uint64_t>(fence));
    event.payload = from.counted();
    event.name = found.resource.name;
    if (!from.ok()) return std::nullopt;
    found.events.push_back(std::move(event));
  }
  return found;
}

result<spi::granted> grant_of(const spi::renewal& answer) {
  switch (answer.state) {
    case spi::hold_state::renewed:
    case spi::hold_state::held:
      return answer.grant;
    case spi::hold_state::lost:
      return failure(errc::lost, "not held here");
    default:
      return failure(errc::unavailable, "no usable answer");
  }
}

std::uint64_t server_number(std::string_view run_id) noexcept {
  return run_id.empty() ? 0 : static_cast<std::uint64_t>(std::hash<std::string_view>{}(run_id));
}

}  // namespace holdfast::redis
