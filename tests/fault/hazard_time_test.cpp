// Hazards of time and pauses: a process that is stopped, its neighbours that are not.
#include "stores/memory/hub.hpp"
#include "stores/memory/memory_store.hpp"
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace holdfast::test {
namespace {

// What a lock protects: accepts a write only with a fence that is not smaller than any before.
class fenced_resource {
 public:
  bool write(fence_token fence) {
    if (fence < greatest_) return false;
    greatest_ = fence;
    return true;
  }

 private:
  fence_token greatest_;
};

core::request short_request(duration ttl, duration wait = forever) {
  auto request = request_for("stock", wait);
  request.lock.ttl = ttl;
  return request;
}

// Two processes of one server, each with a clock and a life of its own.
class hazard_time : public ::testing::Test {
 protected:
  std::shared_ptr<memory::hub> server = std::make_shared<memory::hub>();
  std::shared_ptr<manual_runtime> first_time = std::make_shared<manual_runtime>(1);
  std::shared_ptr<manual_runtime> second_time = std::make_shared<manual_runtime>(2);
  engine_bench first{first_time, std::make_shared<memory::memory_store>(first_time, server)};
  engine_bench second{second_time, std::make_shared<memory::memory_store>(second_time, server)};
  fenced_resource resource;

  void pass(duration span) {
    const time_point end = first_time->now() + span;
    while (first_time->now() < end) {
      const time_point next = std::min(end, first_time->now() + 10ms);
      first_time->run_until(next);
      second_time->run_until(next);
    }
  }
  // The first process is stopped, the second goes on.
  void stop_first(duration span) {
    first_time->pause_for(span);
    second_time->run_until(first_time->now());
  }
};

TEST_F(hazard_time, a_holder_stopped_past_its_lease_knows_it_at_the_first_look) {
  // Broken: a garbage collection, or a swapping or suspended machine, causes two holders.
  const auto stopped = first.ask(short_request(1s));
  ASSERT_TRUE(stopped->granted);
  const std::stop_token lost = stopped->granted->lost();
  const auto next = second.ask(short_request(1s));
  stop_first(3s);
  ASSERT_TRUE(next->granted);
  EXPECT_FALSE(stopped->granted->valid());  // before anything of ours has run
  pass(10ms);
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_TRUE(next->granted->valid());
  pass(5s);
  EXPECT_FALSE(stopped->granted->valid());  // no renewal brings it back
  EXPECT_TRUE(next->granted->valid());
}

TEST_F(hazard_time, a_stopped_holders_write_is_refused_by_its_fence) {
  // Broken: the write of a holder that was stopped between its check and its effect goes through;
  // nothing on the client can prevent that, only the fence.
  const auto stopped = first.ask(short_request(1s));
  ASSERT_TRUE(stopped->granted && stopped->granted->valid());  // the look
  const fence_token looked = stopped->granted->fence();
  const auto next = second.ask(short_request(1s));
  stop_first(3s);
  ASSERT_TRUE(next->granted);
  EXPECT_TRUE(resource.write(next->granted->fence()));
  EXPECT_FALSE(resource.write(looked));  // the effect
}

TEST_F(hazard_time, a_waiter_stopped_across_its_grant_does_not_believe_it) {
  // Broken: the push stays in the socket while its process is stopped, and is trusted when read,
  // beside the next holder.
  auto holder = second.ask(short_request(1s));
  const auto stopped = first.ask(short_request(30s));
  pass(100ms);
  holder->granted.reset();  // the push goes to the first process ...
  ASSERT_TRUE(stopped->granted);
  const auto next = second.ask(short_request(30s));
  stop_first(5s);  // ... which is stopped for longer than the offer
  ASSERT_TRUE(next->granted) << next->state();
  EXPECT_FALSE(stopped->granted->valid());
  pass(5s);
  EXPECT_TRUE(next->granted->valid());
  EXPECT_FALSE(stopped->granted->valid());
}

TEST_F(hazard_time, a_pause_shorter_than_the_lease_costs_nothing) {
  // Broken: every hiccup loses all locks.
  const auto holder = first.ask(short_request(3s));
  const auto waiter = second.ask(short_request(3s));
  for (int i = 0; i < 20; ++i) {
    stop_first(1500ms);
    pass(200ms);
    ASSERT_TRUE(holder->granted->valid()) << i;
  }
  EXPECT_FALSE(waiter->answered());
}

TEST_F(hazard_time, no_mix_of_wait_and_ttl_lets_two_in) {
  // Broken: particular waits and leases grant one lock to several (redisson#2172).
  const duration ttls[] = {100ms, 250ms, 1s, 30s};
  const duration waits[] = {0s, 1ms, 50ms, 100ms, 999ms, 5s, forever};
  for (const duration held : ttls) {
    for (const duration asked_ttl : ttls) {
      for (const duration wait : waits) {
        auto holder = first.ask(short_request(held));
        ASSERT_TRUE(holder->granted);
        const auto other = second.ask(short_request(asked_ttl, wait));
        pass(1500ms);
        EXPECT_TRUE(holder->granted->valid());
        EXPECT_FALSE(other->granted) << "two holders";
        if (wait <= 1s) {
          EXPECT_TRUE(other->answered()) << "no end of the wait";
        }
        if (other->handle) other->handle->cancel();
        holder->granted.reset();
        pass(100ms);
        if (other->granted) other->granted.reset();
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::test
