// Which server, and as whom.
#pragma once

#include "net/backoff.hpp"
#include "net/target.hpp"
#include "net/tls_context.hpp"
#include "stores/redis/client/batch.hpp"
#include "stores/redis/client/reply.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/url.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::redis {

struct server_options {
  enum class role : std::uint8_t {
    master,  // anything else is refused at connect, and left when it is demoted
    any,
  };

  net::target where;
  std::shared_ptr<const net::tls_context> tls;  // null: none
  std::string user;                             // empty: the default user
  spi::secret password;                         // neither: no AUTH at all
  std::uint32_t database = 0;
  std::string name;  // for CLIENT LIST; no spaces; empty: none
  role wanted = role::master;
  std::uint32_t wait_replicas = 0;                   // a grant counts once so many have it
  bool functions = true;                             // false: scripts, as before Redis 7
  duration connect_limit = std::chrono::seconds(5);  // resolve, connect, TLS and greeting together
  net::backoff_limits backoff;
  reader_limits limits;
  pacing::settings pace;
};

}  // namespace holdfast::redis
