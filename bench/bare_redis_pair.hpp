// The yardstick of the Redis store: its own two functions, acquire and release, sent by the bare
// driver and nothing more: no queue here, no renewal, no loss, no other thread.
#pragma once

#include "bare_redis.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/scripts.hpp"
#include "stores/redis/wire.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::bench {

// A call of one of the store's functions, as the store sends it.
inline std::string call_of(const redis::script& which, const redis::place& at,
                           std::string_view argument) {
  const std::string mark = redis::observed_key(at.partition);
  const std::string_view keys[] = {at.state, mark};
  const std::string_view arguments[] = {argument};
  return std::string(which.call(keys, arguments).bytes());
}
inline void load_functions(const bare_redis& into) {
  into.call({"FUNCTION", "LOAD", "REPLACE", redis::library_text()});
}

class bare_pair {
 public:
  bare_pair(std::uint16_t port, const std::string& name) : line_(port) {
    const auto all = redis::scripts::make(redis::channel_id::flavour::classic);
    const auto place = redis::place_of({"", name});
    spi::claim claim;
    claim.id.bytes[0] = 7;
    claim.ttl = std::chrono::seconds(30);
    claim.fence_block = 32;
    claim.payload = "host:1234:bench";
    const redis::sender from{"0123456789abcdef", std::chrono::seconds(2)};
    const std::string bytes =
        redis::claim_bytes(claim, from, redis::queueing::allowed, std::nullopt);
    load_functions(line_);
    attempt_ = call_of(all->attempt, place, bytes);
    leave_ = call_of(all->leave, place, redis::leaving_bytes(claim, from));
  }
  void take() const { line_.call(attempt_); }
  void give() const { line_.call(leave_); }
  void run() const {
    take();
    give();
  }
  void batch(int pairs) const {
    for (int i = 0; i < pairs; ++i) {
      line_.post(attempt_);
      line_.post(leave_);
    }
    for (int i = 0; i < 2 * pairs; ++i) line_.take();
  }

 private:
  bare_redis line_;
  std::string attempt_;
  std::string leave_;
};

}  // namespace holdfast::bench
