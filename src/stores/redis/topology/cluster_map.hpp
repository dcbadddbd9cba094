// Which node has which slot, as the nodes of a cluster tell it; read without I/O.
#pragma once

#include "net/target.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"
#include "stores/redis/layout.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

inline constexpr std::uint16_t slot_count = 16'384;

// CRC16 (XMODEM) of a hash tag.
std::uint16_t slot_of(std::string_view tag) noexcept;
// Of all keys and channels of the lane.
std::uint16_t slot_of_lane(lane which);

struct cluster_map {
  std::int64_t epoch = 0;  // grows with each failover and each slot that was moved
  std::array<std::optional<net::target>, lane_count> masters;  // none: nobody serves the slot
};

// Two questions in one burst: CLUSTER INFO, CLUSTER SLOTS.
command cluster_question();
// The answer to both. `asked`: the host that answered, which is meant where none is named.
// None: no map (an error reply, or a strange one).
std::optional<cluster_map> read_cluster(const reply& answer, const std::string& asked);

// From "MOVED 3999 127.0.0.1:6381" or "ASK ...".
std::optional<net::target> redirection(std::string_view text, const std::string& asked);

}  // namespace holdfast::redis
