// How other libraries keep their locks in Redis, as far as we support them: the names of their keys
// and channels, and which scripts use their format.
#pragma once

#include "stores/redis/doctor.hpp"
#include "stores/redis/scripts.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/claim.hpp>

#include <string>
#include <string_view>

namespace holdfast::redis {

// One kind of lock. All scripts have the same arguments and answers; the differences are here.
struct foreign_form {
  claim_scripts scripts::*calls;
  // What represents a claim in the lock.
  std::string (*owner)(const spi::claim& claim);
  // A key that the scripts need in addition to the common ones; empty: none.
  std::string (*beside)(const std::string& name, const std::string& owner);
  // Where waiters are notified of a release; empty: nowhere.
  std::string (*channel)(const std::string& name);
  // Waiters are notified one by one, each on its own channel, which ends with ":OWNER".
  bool in_line;
  // What an ACL must allow beside the name itself.
  const char* keys;
  const char* channels;
};

struct foreign_format {
  const char* dialect;  // as the URL names it
  std::string (*key)(const std::string& name);
  std::string (*fence_key)(const spi::resource_id& resource);
  // The prefix of our own keys beside it.
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

// SET NX PX and compare-and-delete, as used by redis-py, redsync and node-redlock.
extern const foreign_format simple_format;
// The same as used by python-redis-lock: its waiters sleep until there is something in a list.
extern const foreign_format python_redis_lock_format;
// Redisson's RLock, with the token of its RFencedLock as the fence; RFairLock, RReadWriteLock,
// RPermitExpirableSemaphore and RCountDownLatch.
extern const foreign_format redisson_format;

// The format of this dialect; null: there is none.
const foreign_format* foreign_format_of(const std::string& dialect);

// What doctor tries. Any name may be somebody's lock: it leaves names alone.
requirements needed_by(const foreign_format& format);

// How an owner, ours or another library's, is shown to people: as lease::claim() if it is ours. The
// owner itself is the key to the lock.
std::string public_owner(std::string_view owner);
// In Redisson's read-write lock: a reader, not a writer.
bool reads(std::string_view owner) noexcept;

// In the form that the scripts take.
std::string milliseconds(duration time);

// Of Redisson's RCountDownLatch.
std::string redisson_latch_channel(const std::string& name);

}  // namespace holdfast::redis
