// A claim: a request for a resource, waiting or granted. Its id is made by the client before the
// first round trip, so that every verb may be sent twice without harm.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/inspection.hpp>

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::spi {

// 128 random bits. The id is the capability to unlock: it is never printed; people and children see
// public_id().
struct claim_id {
  std::array<std::uint8_t, 16> bytes{};

  friend auto operator<=>(const claim_id&, const claim_id&) noexcept = default;
};

// 16 hex digits of a hash of the id: enough to tell claims apart, not enough to unlock.
std::string public_id(const claim_id& id);

// 32 hex digits; for a store's own use, never for people.
std::string to_hex(const claim_id& id);

struct resource_id {
  std::string space;  // the namespace, may be empty
  std::string name;

  friend auto operator<=>(const resource_id&, const resource_id&) noexcept = default;
};

using mode = lock_mode;

// What an exclusive claim is to its user. Exclusion is the same; engines that share a layout with
// others' clients write it as those do.
enum class role : std::uint8_t { lock, writer, leader };

// Immutable once made; shared between the core and the store.
struct claim {
  claim_id id{};
  resource_id resource{};
  spi::mode mode = spi::mode::exclusive;
  spi::role role = spi::role::lock;
  std::uint32_t permits = 1;  // permit mode: how many, all or nothing
  std::uint32_t max = 1;      // permit mode: how many there are
  bool fair = false;
  bool queued = true;   // false (a try): answered at once, never queued
  bool renewed = true;  // false: the lease ends after ttl, a renewal only completes an offer
  // On its way between two processes: it ends after ttl, whatever the engine knows of any client.
  bool detached = false;
  duration ttl{};
  duration lock_delay{};          // after an abnormal end the resource stays blocked this long
  std::uint32_t fence_block = 1;  // the grant reserves this many fences, for local hand-overs
  std::string payload{};          // who: "host:pid:program", or an election's own text
  // Set: the store is one member of a quorum and is asked for its vote. It grants with this number
  // if its own clock and its last fence allow it, else with a number of its own; 0: none is proposed.
  std::optional<std::uint64_t> proposed_fence{};
};

using claim_ptr = std::shared_ptr<const claim>;

}  // namespace holdfast::spi
