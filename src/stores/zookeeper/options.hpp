// Which ensemble, where in its tree, and as whom.
#pragma once

#include "stores/queued/options.hpp"
#include "stores/zookeeper/protocol.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/url.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::zookeeper {

enum class name_layout : std::uint8_t {
  flat,  // a name is one node: '/' in it is written %2F
  path,  // '/' nests
};

// How the nodes of claims are named. Nodes with the other names count, too.
enum class node_naming : std::uint8_t {
  curator,  // _c_UUID-lock-SEQ, __WRIT__, __READ__, latch-
  kazoo,    // HEX__lock__SEQ, HEX__rlock__SEQ; semaphores as Curator's
};

// Which of Curator's recipes an election uses.
enum class election_layout : std::uint8_t {
  latch,     // LeaderLatch
  selector,  // LeaderSelector: a mutex, and kazoo's Election
};

// The root is "" or "/shop".
struct server_options : stores::cluster_options {
  openness acl = openness::everybody;
  name_layout layout = name_layout::flat;
  node_naming naming = node_naming::curator;
  election_layout election = election_layout::latch;
  duration tick{0};  // of the servers; 0: unknown, half a session's timeout is assumed
  std::size_t line_limit = 12'000;  // hold one name or wait for it; then overloaded
};

}  // namespace holdfast::zookeeper
