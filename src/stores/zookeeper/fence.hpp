// The fence of a node: the zxid that made it, which grows over the whole ensemble and outlives the
// node's parent, with room behind it for the hand-overs inside a process.
#pragma once

#include <holdfast/fence.hpp>

#include <cstdint>

namespace holdfast::zookeeper {

// More than a grant reserves (one and its 32 hand-overs). An ensemble's epoch has 26 bits left.
inline constexpr unsigned fence_room = 6;

constexpr fence_token fence_of(std::int64_t created) noexcept {
  return fence_token(static_cast<std::uint64_t>(created) << fence_room);
}

}  // namespace holdfast::zookeeper
