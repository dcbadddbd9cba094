// How other libraries keep their locks in Redis, as far as we share them: a mutex under the plain name.
#pragma once

#include "stores/redis/scripts.hpp"

#include <holdfast/spi/claim.hpp>

#include <string>

namespace holdfast::redis {

// The scripts of all formats have the same keys, arguments and answers; what differs is here.
struct foreign_format {
  const char* dialect;  // as the URL names it
  script scripts::*attempt;
  script scripts::*leave;
  script scripts::*renew;
  script scripts::*inspect;
  // What stands for a claim in the lock.
  std::string (*owner)(const spi::claim_id& id);
  std::string (*fence_key)(const spi::resource_id& resource);
  // Where those who wait hear of a release; empty: nowhere.
  std::string (*channel)(const std::string& name);
  // What an ACL must allow beside the name itself.
  const char* keys;
  const char* channels;
};

// SET NX PX and compare-and-delete, as redis-py, redsync and node-redlock have it.
extern const foreign_format simple_format;
// Redisson's RLock, with the token of its RFencedLock as the fence.
extern const foreign_format redisson_format;

// The format of this dialect; null: there is none.
const foreign_format* foreign_format_of(const std::string& dialect);

}  // namespace holdfast::redis
