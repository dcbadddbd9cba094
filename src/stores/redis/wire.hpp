// Claims, answers, pushes and events as the scripts write and read them.
#pragma once

#include "stores/redis/client/reply.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

using microseconds = std::chrono::duration<std::int64_t, std::micro>;

spi::server_time to_server_time(std::int64_t microseconds_since_1970) noexcept;

// What a script is told of a claim.
struct sender {
  std::string process;  // 16 characters
  duration offer;
};
// A new one for a client: 16 random hexadecimal digits.
std::string new_process_name(spi::runtime& runtime);

enum class queueing : std::uint8_t { allowed, forbidden };
std::string claim_bytes(const spi::claim& claim, const sender& from, queueing how,
                        std::optional<spi::server_time> not_after);
// Of one that leaves. The server's Lua takes a nanosecond or two for each byte that it is given.
std::string leaving_bytes(const spi::claim& claim, const sender& from);

// What a script answers begins with a number, mostly followed by the server's time. A number alone is that
// time, or 0 where the script did not look at the clock: it went as it mostly does. A string begins with that
// time too: an attempt is blocked, and to tell so is as common as to grant.
struct script_answer {
  std::int64_t kind = 0;  // negative: refused
  spi::server_time at{};
  const std::vector<reply>* fields = nullptr;  // null: a number alone, kind 1; or a string, kind 0
  std::string_view packed;                     // behind the time of a string

  [[nodiscard]] bool dated() const noexcept { return at != spi::server_time{}; }
  [[nodiscard]] std::int64_t number(std::size_t index) const noexcept;
  [[nodiscard]] std::string_view text(std::size_t index) const noexcept;
};
// unavailable: that is no answer of ours.
result<script_answer> answer_of(const reply& from);

// Why a script refused, as an error. `number`: of the refusal.
error refusal_of(const script_answer& from, const spi::claim* claim);

spi::granted granted_of(const script_answer& from, std::size_t first);
result<spi::outcome> outcome_of(const script_answer& from, const spi::claim& claim);
// One claim's five fields of a renewal.
spi::renewal renewal_of(const std::vector<reply>& fields, std::size_t first, spi::server_time at);

// How long a resource stays shut after an abnormal end; 0: it is not.
inline std::optional<duration> shut_of(std::int64_t micro) noexcept {
  return micro > 0 ? std::optional<duration>(microseconds(micro)) : std::nullopt;
}

struct stored_holder {
  spi::claim_id id;
  spi::holder shown;
};
std::optional<stored_holder> holder_of(std::string_view bytes, spi::server_time now);
std::optional<spi::waiting> waiter_of(std::string_view bytes, spi::server_time now);

// What the server tells a process.
struct push {
  enum class kind : std::uint8_t { granted, wanted, gone };
  kind what = kind::wanted;
  spi::claim_id claim;
  spi::granted grant;   // with granted
  bool forced = false;  // with gone: at once, not only without renewal
};
// Stops at what it does not know.
std::vector<push> pushes_of(std::string_view message);

struct event_message {
  spi::resource_id resource;
  std::vector<spi::store_event> events;
};
std::optional<event_message> events_of(std::string_view message);

}  // namespace holdfast::redis
