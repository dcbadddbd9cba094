// The Lua scripts of the store, from scripts/*.lua, as they are sent to the server.
#pragma once

#include "stores/redis/client/script.hpp"
#include "stores/redis/client/subscriber.hpp"

#include <memory>

namespace holdfast::redis {

// Thread-safe, immutable.
struct scripts {
  script attempt;
  script leave;
  script renew;
  script change;
  script revoke;
  script inspect;
  script list;
  script latch;
  script vote;
  script raise;
  script simple_attempt;
  script simple_leave;
  script simple_renew;
  script simple_inspect;
  script redisson_attempt;
  script redisson_leave;
  script redisson_renew;
  script redisson_inspect;

  // `how`: the kind of channels on which they tell processes of their claims.
  static std::shared_ptr<const scripts> make(channel_id::flavour how);
};

}  // namespace holdfast::redis
