// The Lua code of the store, as it is sent to the server: the native dialect's library, from
// library/*.lua, and the scripts of the foreign dialects, from foreign/*.lua.
#pragma once

#include "stores/redis/client/command.hpp"
#include "stores/redis/client/subscriber.hpp"

#include <memory>
#include <string>

namespace holdfast::redis {

// In the form that FUNCTION LOAD takes, for operators who load it themselves.
std::string library_text();

// For one kind of lock in a foreign dialect.
struct claim_scripts {
  script attempt;
  script leave;
  script renew;
};

// Thread-safe, immutable.
struct scripts {
  script attempt;
  script leave;
  script renew;
  script change;
  script transfer;
  script revoke;
  script inspect;
  script list;
  script latch;
  script latch_count;
  script vote;
  script version;  // does nothing
  claim_scripts simple;
  claim_scripts redisson;
  claim_scripts redisson_read_write;
  claim_scripts redisson_permits;
  script simple_inspect;
  script redisson_inspect;
  script redisson_latch_set;
  script redisson_latch_down;
  script redisson_latch_count;

  // `how`: the kind of channels on which they notify processes of their claims.
  static std::shared_ptr<const scripts> make(channel_id::flavour how);
};

}  // namespace holdfast::redis
