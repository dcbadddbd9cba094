// Which cluster, where in its keys, and as whom.
#pragma once

#include "net/backoff.hpp"
#include "net/target.hpp"
#include "net/tls_context.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/url.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::etcd {

enum class name_layout : std::uint8_t {
  flat,  // '/' in a name is written %2F: no name's keys are below another's
  path,  // '/' stays, as with Go's clients
};

struct server_options {
  std::vector<net::target> servers;
  std::shared_ptr<const net::tls_context> tls;  // null: none
  std::string root;                             // "" or "shop/": every key begins so
  std::string user;
  spi::secret password;
  name_layout layout = name_layout::flat;
  duration connect_limit = std::chrono::seconds(5);  // one server, from resolving to its settings
  duration stall_limit = std::chrono::seconds(5);    // then a connection without answers is left
  net::backoff_limits backoff;
};

}  // namespace holdfast::etcd
