// dialect=redisson: the queue of Redisson's fair lock, in which waiters of both sides are.
// Redisson's part is played by the commands that its scripts send; `make interop` runs the library
// itself.
#include "integration/redis_store_harness.hpp"

#include <cstdint>
#include <future>
#include <stop_token>

namespace holdfast::test {
namespace {

class redis_redisson_fair : public testing::Test {
 protected:
  redis_server server;
  client a = open_client(redis_url(server.port(), "?dialect=redisson&connect_timeout=60s"));
  client b = open_client(redis_url(server.port(), "?dialect=redisson&connect_timeout=60s"));
  const std::string java = "8743c9c0-0795-4907-87fd-6c719a6b4586:74";
  const std::string queue = "redisson_lock_queue:{stock}";
  const std::string ends = "redisson_lock_timeout:{stock}";
  const std::string channel = "redisson_lock__channel:{stock}";
  static constexpr std::int64_t patience_ms = 5'000;
  static constexpr std::int64_t redissons_ms = 300'000;

  mutex of(const client& from) const { return mutex(from, "stock", {.ttl = 20s, .fair = true}); }
  [[nodiscard]] std::future<result<lease>> waits(const client& from, std::stop_token stop = {}) {
    return in_thread(
        [lock = of(from), stop]() mutable { return lock.acquire({.wait = patience}, stop); });
  }
  [[nodiscard]] std::string line() const { return server.cli({"LRANGE", queue, "0", "-1"}); }
  [[nodiscard]] bool stand(const std::string& count) const {
    return eventually([&] { return server.cli({"LLEN", queue}) == count; });
  }
  [[nodiscard]] std::int64_t until(const std::string& who) const {
    const std::string score = server.cli({"ZSCORE", ends, who});
    return score.empty() ? 0 : std::stoll(score);
  }
  [[nodiscard]] std::int64_t now() const {
    const std::string both = server.cli({"TIME"});
    return std::stoll(both) * 1'000 + std::stoll(both.substr(both.find('\n'))) / 1'000;
  }

  // As RFairLock does, in one step.
  void take() const {
    server.cli({"EVAL",
                "redis.call('lpop', KEYS[2]) redis.call('zrem', KEYS[3], ARGV[1]) "
                "for _, each in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do "
                "redis.call('zincrby', KEYS[3], -tonumber(ARGV[2]), each) end "
                "redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], 60000)",
                "3", "stock", queue, ends, java, std::to_string(redissons_ms)});
  }
  void queue_up(std::int64_t from_now) const {
    server.cli({"RPUSH", queue, java});
    server.cli({"ZADD", ends, std::to_string(now() + from_now), java});
  }
  void give_back() const {
    server.cli({"DEL", "stock"});
    server.cli({"PUBLISH", channel + ":" + server.cli({"LINDEX", queue, "0"}), "0"});
  }
};

TEST_F(redis_redisson_fair, a_waiter_of_ours_queues_and_is_woken_by_its_own_channel) {
  // Broken: Java's threads overtake us; or nobody notifies us when it is our turn.
  take();
  auto waiting = waits(a);
  ASSERT_TRUE(stand("1"));
  const std::string mine = line();
  EXPECT_TRUE(mine.ends_with(":0")) << mine;
  const std::int64_t end = until(mine);
  EXPECT_LE(end, now() + patience_ms);
  EXPECT_GT(end, now());
  ASSERT_TRUE(eventually([&] {
    return server.cli({"PUBSUB", "NUMSUB", channel + ":" + mine}).ends_with("1");
  }));
  give_back();
  const auto held = waiting.get();
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(server.cli({"HKEYS", "stock"}), mine);
  EXPECT_EQ(server.cli({"EXISTS", queue, ends}), "0");
}

TEST_F(redis_redisson_fair, a_waiter_in_java_is_first_and_is_woken) {
  // Broken: a free lock is taken ahead of earlier waiters.
  queue_up(redissons_ms);
  EXPECT_EQ(told(of(a).acquire({.wait = 0s})), std::string(describe(errc::busy)));
  EXPECT_EQ(line(), java) << "a try does not queue";
  auto waiting = waits(a);
  ASSERT_TRUE(stand("2"));
  EXPECT_TRUE(line().starts_with(java + "\n"));
  const std::string mine = line().substr(java.size() + 1);
  // Its release shortens the times of those behind by as much: they must not be taken for dead.
  const std::int64_t end = until(mine);
  EXPECT_GT(end, now() + redissons_ms);
  EXPECT_FALSE(arrives(waiting, 10ms));
  take();
  EXPECT_FALSE(arrives(waiting, 10ms));
  give_back();
  EXPECT_EQ(told(waiting.get()), "ok");
}

TEST_F(redis_redisson_fair, a_place_is_kept_while_its_claim_waits) {
  // Broken: after five seconds others take it for dead, and it is last in the queue again.
  take();
  auto waiting = waits(a);
  ASSERT_TRUE(stand("1"));
  const std::string mine = line();
  const std::int64_t first = until(mine);
  EXPECT_TRUE(eventually([&] { return until(mine) > first; }));
  give_back();
  EXPECT_EQ(told(waiting.get()), "ok");
}

TEST_F(redis_redisson_fair, a_dead_waiter_of_either_side_costs_its_time_and_no_more) {
  // Broken: the queue ends behind it.
  server.cli({"RPUSH", queue, java, "00000000-0000-4000-8000-000000000000:0"});
  const std::int64_t soon = now() + 1'500;
  server.cli({"ZADD", ends, std::to_string(soon), java, std::to_string(soon),
              "00000000-0000-4000-8000-000000000000:0"});
  const auto held = of(a).acquire({.wait = patience});
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(server.cli({"EXISTS", queue, ends}), "0");
}

TEST_F(redis_redisson_fair, a_waiter_that_gives_up_leaves_the_queue_and_takes_its_time_with_it) {
  // Broken: those behind it wait for a waiter that is gone.
  take();
  std::stop_source stop;
  auto waiting = waits(a, stop.get_token());
  ASSERT_TRUE(stand("1"));
  queue_up(redissons_ms);
  const std::int64_t before = until(java);
  stop.request_stop();
  EXPECT_EQ(told(waiting.get()), std::string(describe(errc::cancelled)));
  ASSERT_TRUE(stand("1"));
  EXPECT_EQ(line(), java);
  EXPECT_EQ(until(java), before - patience_ms);
}

TEST_F(redis_redisson_fair, waiters_of_several_clients_are_served_in_turn) {
  // Broken: the order, if both are ours.
  auto held = of(a).acquire();
  ASSERT_TRUE(held) << held.error().message();
  auto first = waits(b);
  ASSERT_TRUE(stand("1"));
  auto second = waits(a);
  ASSERT_TRUE(stand("2"));
  const auto state = a.inspect("stock");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->waiters.size(), 2U);
  EXPECT_EQ(told(held->release()), "ok");
  auto one = first.get();
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_FALSE(arrives(second, 20ms));
  EXPECT_EQ(told(one->release()), "ok");
  EXPECT_EQ(told(second.get()), "ok");
}

TEST_F(redis_redisson_fair, without_the_right_to_the_line_it_is_refused) {
  // Broken: a fair lock that bypasses the queue.
  server.cli({"ACL", "SETUSER", "java", "on", ">secret", "~stock", "~holdfast:*",
              "~redisson_lock_token:*", "resetchannels", "&redisson_lock__channel:*", "+@all",
              "-@admin", "-@dangerous", "+info", "+role"});
  const client mine = open_client("redis://java:secret@127.0.0.1:" + std::to_string(server.port()) +
                                  "?dialect=redisson");
  const auto refused = of(mine).acquire({.wait = 0s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), errc::denied);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("redisson_lock_queue"));
}

}  // namespace
}  // namespace holdfast::test
