// The yardstick of the Redis store: its own two scripts, taking and giving back, sent by the bare
// driver and nothing more: no waiting line here, no renewal, no loss, no other thread.
#pragma once

#include "bare_redis.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/scripts.hpp"
#include "stores/redis/wire.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::bench {

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
    const std::string mark = redis::observed_key(place.partition);
    for (const auto* each : {&all->attempt, &all->leave})
      line_.call({"SCRIPT", "LOAD", each->text()});
    attempt_ =
        bare_redis::formatted({"EVALSHA", all->attempt.hash(), "2", place.state, mark, bytes});
    leave_ = bare_redis::formatted(
        {"EVALSHA", all->leave.hash(), "2", place.state, mark, redis::leaving_bytes(claim, from)});
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
