// Where things are in Redis: the names of keys and channels. docs/formats/redis.md explains them.
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
// partition stay on one node of a cluster. A store without such keys (a foreign dialect in a
// cluster) has a partition for each of the cluster's slots instead.
using partition = std::uint16_t;
inline constexpr std::size_t partition_count = 256;

// A resource's keys.
struct place {
  redis::partition partition = 0;
  std::string state;    // holdfast:{LANE}:s:NAME; the keys beside it are made by the scripts
  std::string written;  // "namespace/name" if the key has only its beginning and a hash
};

partition partition_of(const spi::resource_id& resource) noexcept;
place place_of(const spi::resource_id& resource);

// "holdfast:{17}:"
std::string partition_prefix(partition which);
// Exists while somebody watches the partition's events. Passed to every script of
// the partition: built once.
const std::string& observed_key(partition which);
// Since when the server keeps its state; for quorums.
std::string born_key();
// Where one process is notified of its claims.
std::string process_channel(partition which, std::string_view process);
std::string event_channel(partition which);
std::string latch_channel(partition which);

// For SCAN: the states of all resources whose name has this prefix (and perhaps of some others).
std::string state_pattern(const std::string& space, const std::string& prefix);
// The partition of a state's key, and what follows "s:"; none: not such a key.
struct parsed_state {
  redis::partition partition = 0;
  std::string_view tail;
};
std::optional<parsed_state> parse_state(std::string_view key) noexcept;
// From what follows "s:", or from the name stored beside it. None: not a resource.
std::optional<spi::resource_id> resource_of(std::string_view tail, std::string_view written);

}  // namespace holdfast::redis
