// How other libraries keep their locks in Redis, as far as we share them: the names of their keys and channels, and
// which scripts speak their format.
#pragma once

#include "stores/redis/doctor.hpp"
#include "stores/redis/scripts.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/claim.hpp>

#include <string>
#include <string_view>

namespace holdfast::redis {

// One kind of lock. The scripts of all have the same arguments and answers; what differs is here.
struct foreign_form {
  claim_scripts scripts::*calls;
  // What stands for a claim in the lock.
  std::string (*owner)(const spi::claim& claim);
  // A key that the scripts need after the common ones; empty: none.
  std::string (*beside)(const std::string& name, const std::string& owner);
  // Where those who wait hear of a release; empty: nowhere.
  std::string (*channel)(const std::string& name);
  // They hear of it one by one, each on a channel of its own, which ends with ":OWNER".
  bool in_line;
  // What an ACL must allow beside the name itself.
  const char* keys;
  const char* channels;
};

struct foreign_format {
  const char* dialect;  // as the URL names it
  std::string (*key)(const std::string& name);
  std::string (*fence_key)(const spi::resource_id& resource);
  // Of what is ours beside it.
  std::string (*prefix)(const spi::resource_id& resource);
  script scripts::*inspect;
  foreign_form lock;
  const foreign_form* fair;        // null: none
  const foreign_form* read_write;  // the same
  const foreign_form* permits;     // the same
  bool votes;                      // its servers may be members of a quorum
  bool latches;
  bool has_tags;  // all keys and channels of a lock are in the slot of its name, if that allows it

  [[nodiscard]] const foreign_form& of(const spi::claim& claim) const noexcept;
};

// SET NX PX and compare-and-delete, as redis-py, redsync and node-redlock have it.
extern const foreign_format simple_format;
// The same as python-redis-lock has it: its waiters sleep until something is in a list.
extern const foreign_format python_redis_lock_format;
// Redisson's RLock, with the token of its RFencedLock as the fence; RFairLock, RReadWriteLock,
// RPermitExpirableSemaphore and RCountDownLatch.
extern const foreign_format redisson_format;

// The format of this dialect; null: there is none.
const foreign_format* foreign_format_of(const std::string& dialect);

// What doctor tries. The names of locks are anybody's: it leaves them alone.
requirements needed_by(const foreign_format& format);

// What people see of an owner, of ours or of another library's: as lease::claim() where it is ours. The owner itself is
// the key to the lock.
std::string public_owner(std::string_view owner);
// With Redisson's read-write lock: reads, does not write.
bool reads(std::string_view owner) noexcept;

// As the scripts take it.
std::string milliseconds(duration time);

// Of Redisson's RCountDownLatch.
std::string redisson_latch_channel(const std::string& name);

}  // namespace holdfast::redis
