// Which ensemble, where in its tree, and as whom.
#pragma once

#include "net/backoff.hpp"
#include "net/target.hpp"
#include "net/tls_context.hpp"
#include "stores/zookeeper/protocol.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/url.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::zookeeper {

enum class name_layout : std::uint8_t {
  flat,  // a name is one node: '/' in it is written %2F
  path,  // '/' nests
};

struct server_options {
  std::vector<net::target> servers;
  std::shared_ptr<const net::tls_context> tls;  // null: none
  std::string root;                             // "" or "/shop": everything is below it
  std::string user;
  spi::secret password;
  openness acl = openness::everybody;
  name_layout layout = name_layout::flat;
  duration tick{0};  // of the servers; 0: unknown, taken for half a session's time-out
  duration connect_limit = std::chrono::seconds(5);  // one server, from resolving to the greeting
  net::backoff_limits backoff;
};

}  // namespace holdfast::zookeeper
