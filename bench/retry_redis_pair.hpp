// Publish and retry, as other libraries lock: a client that finds the lock held subscribes, and
// tries again when a release is published.
#pragma once

#include "bare_redis.hpp"

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::bench {

// The documented publish-and-retry protocol: a hash with a counter, a channel, a latch.
inline constexpr const char* retry_lock =
    "if (redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1) "
    "then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil "
    "end return redis.call('pttl', KEYS[1])";
inline constexpr const char* retry_unlock =
    "local val = redis.call('get', KEYS[3]) if val ~= false then return tonumber(val) end "
    "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end "
    "local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1) if counter > 0 then "
    "redis.call('pexpire', KEYS[1], ARGV[2]) redis.call('set', KEYS[3], 0, 'px', ARGV[5]) return 0 "
    "else redis.call('del', KEYS[1]) redis.call(ARGV[4], KEYS[2], ARGV[1]) "
    "redis.call('set', KEYS[3], 1, 'px', ARGV[5]) return 1 end";

class retry_pair {
 public:
  retry_pair(std::uint16_t port, const std::string& name, const std::string& who)
      : line_(port), listener_(port) {
    const std::string channel = "redisson_lock__channel:{" + name + "}";
    const std::string latch = "redisson_unlock_latch:{" + name + "}:" + who;
    const std::string lock_hash = line_.call({"SCRIPT", "LOAD", retry_lock})->str;
    const std::string unlock_hash = line_.call({"SCRIPT", "LOAD", retry_unlock})->str;
    lock_ = bare_redis::formatted({"EVALSHA", lock_hash, "1", name, "30000", who});
    unlock_ = bare_redis::formatted(
        {"EVALSHA", unlock_hash, "3", name, channel, latch, "0", "30000", who, "publish", "30000"});
    unlatch_ = bare_redis::formatted({"DEL", latch});
    listener_.call(std::vector<std::string>{"SUBSCRIBE", channel});
  }
  void lock() const {
    while (line_.call(lock_)->type != REDIS_REPLY_NIL) {
      pollfd file{listener_.descriptor(), POLLIN, 0};
      if (::poll(&file, 1, 1'000) > 0) listener_.take();
    }
  }
  void unlock() const {
    line_.post(unlock_);
    line_.post(unlatch_);
    line_.take();
    line_.take();
  }
  void batch(int pairs) const {
    for (int i = 0; i < pairs; ++i) {
      for (const std::string* each : {&lock_, &unlock_, &unlatch_}) line_.post(*each);
    }
    for (int i = 0; i < 3 * pairs; ++i) line_.take();
  }

 private:
  bare_redis line_;
  bare_redis listener_;
  std::string lock_;
  std::string unlock_;
  std::string unlatch_;
};

}  // namespace holdfast::bench
