// Where things are in Redis: the names of keys and channels. docs/formats/redis.md is the same for
// people.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/claim.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

// One of 256 parts into which a hash of namespace and name divides all resources. It is the hash
// tag of every key and channel of theirs, so that scripts, batches and sharded channels of one
// lane stay on one node of a cluster.
using lane = std::uint8_t;
inline constexpr std::size_t lane_count = 256;

// A resource's keys.
struct place {
  redis::lane lane = 0;
  std::string state;    // holdfast:{LANE}:s:NAME; the keys beside it are made by the scripts
  std::string written;  // "namespace/name" where the key has only its beginning and a hash
};

lane lane_of(const spi::resource_id& resource) noexcept;
place place_of(const spi::resource_id& resource);

// "holdfast:{17}:"
std::string lane_prefix(lane which);
// Is there while somebody watches the lane's events. Every script of the lane gets it: made once.
const std::string& observed_key(lane which);
// Since when the server keeps its state; for quorums.
std::string born_key();
// Where one process hears of its claims.
std::string process_channel(lane which, std::string_view process);
std::string event_channel(lane which);
std::string latch_channel(lane which);

// For SCAN: the states of all resources whose name begins so (and perhaps of some others).
std::string state_pattern(const std::string& space, const std::string& prefix);
// The lane of a state's key, and what stands behind "s:"; none: not such a key.
struct parsed_state {
  redis::lane lane = 0;
  std::string_view tail;
};
std::optional<parsed_state> parse_state(std::string_view key) noexcept;
// From what stands behind "s:", or from what was written beside it. None: nobody's.
std::optional<spi::resource_id> resource_of(std::string_view tail, std::string_view written);

}  // namespace holdfast::redis
