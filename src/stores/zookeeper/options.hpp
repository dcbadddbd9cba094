// Which ensemble, where in its tree, and as whom.
#pragma once

#include "net/backoff.hpp"
#include "net/target.hpp"
#include "net/tls_context.hpp"
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

// What the nodes of claims are called. Nodes of the other kind are counted, too.
enum class node_naming : std::uint8_t {
  curator,  // _c_UUID-lock-SEQ, __WRIT__, __READ__, latch-
  kazoo,    // HEX__lock__SEQ, HEX__rlock__SEQ; semaphores as Curator's
};

// Which of Curator's recipes an election is.
enum class election_layout : std::uint8_t {
  latch,     // LeaderLatch
  selector,  // LeaderSelector: a mutex, and kazoo's Election
};

struct server_options {
  std::vector<net::target> servers;
  std::shared_ptr<const net::tls_context> tls;  // null: none
  std::string root;                             // "" or "/shop": everything is below it
  std::string user;
  spi::secret password;
  openness acl = openness::everybody;
  name_layout layout = name_layout::flat;
  node_naming naming = node_naming::curator;
  election_layout election = election_layout::latch;
  duration tick{0};  // of the servers; 0: unknown, taken for half a session's time-out
  duration connect_limit = std::chrono::seconds(5);  // one server, from resolving to the greeting
  net::backoff_limits backoff;
  std::size_t line_limit = 12'000;  // hold one name or wait for it; then overloaded
};

}  // namespace holdfast::zookeeper
