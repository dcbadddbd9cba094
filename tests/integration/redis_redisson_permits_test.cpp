// dialect=redisson: the permits of Redisson's RPermitExpirableSemaphore, held by both sides.
// Redisson's part is played by the commands that its scripts send; `make interop` runs the library
// itself.
#include "integration/redis_store_harness.hpp"
#include "support/child_process.hpp"
#include "support/temporary_folder.hpp"

#include <cstdint>
#include <fstream>
#include <iterator>

namespace holdfast::test {
namespace {

class redis_redisson_permits : public testing::Test {
 protected:
  redis_server server;
  client a = open_client(redis_url(server.port(), "?dialect=redisson"));
  const std::string ends = "{api}:timeout";
  const std::string busy{describe(errc::busy)};

  [[nodiscard]] std::int64_t now() const {
    const std::string both = server.cli({"TIME"});
    return std::stoll(both) * 1'000 + std::stoll(both.substr(both.find('\n'))) / 1'000;
  }
  // As tryAcquire(lease) and release() do.
  void take(const std::string& id, std::int64_t end) const {
    server.cli({"DECRBY", "api", "1"});
    server.cli({"ZADD", ends, std::to_string(end), id});
  }
  void give_back(const std::string& id) const {
    server.cli({"EVAL",
                "redis.call('zrem', KEYS[2], ARGV[1])"
                "redis.call('publish', ARGV[2], redis.call('incrby', KEYS[1], 1))",
                "2", "api", ends, id, "redisson_sc:{api}"});
  }
};

TEST_F(redis_redisson_permits, a_permit_is_one_of_redissons_that_ends) {
  // Broken: Java sees more free permits than there are, or a crash of ours costs one forever.
  semaphore api(a, "api", {.max = 3, .lock = {.ttl = 20s}});
  auto one = api.acquire({}, {}, 2);
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(server.cli({"GET", "api"}), "1");
  EXPECT_EQ(server.cli({"ZCARD", ends}), "2");
  EXPECT_EQ(
      server.cli({"ZCOUNT", ends, std::to_string(now() + 5'000), std::to_string(now() + 21'000)}),
      "2");
  EXPECT_EQ(api.available().value(), 1U);
  EXPECT_EQ(told(one->release()), "ok");
  EXPECT_EQ(server.cli({"GET", "api"}), "3");
  EXPECT_EQ(server.cli({"EXISTS", ends}), "0");
}

TEST_F(redis_redisson_permits, permits_that_java_holds_are_not_given_and_its_release_wakes_us) {
  // Broken: one more holder than there are permits; or we poll once a second.
  server.cli({"SET", "api", "1"});
  take("0123456789abcdef", 922'337'203'685'477);
  semaphore api(a, "api", {.max = 1});
  EXPECT_EQ(told(api.acquire({.wait = 0s})), busy);
  auto waiting = in_thread([&] { return told(api.acquire({.wait = patience})); });
  ASSERT_TRUE(eventually([&] {
    return server.cli({"PUBSUB", "NUMSUB", "redisson_sc:{api}"}).ends_with("1");
  }));
  give_back("0123456789abcdef");
  EXPECT_EQ(waiting.get(), "ok");
}

TEST_F(redis_redisson_permits, what_has_ended_is_taken_over_and_its_holder_is_notified) {
  // Broken: a dead JVM takes its permits with it; or we trust a permit that is no longer ours.
  server.cli({"SET", "api", "1"});
  take("0123456789abcdef", now() - 1'000);
  semaphore api(a, "api", {.max = 1, .lock = {.ttl = 3s}});
  auto held = api.acquire({.wait = 0s});
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(server.cli({"ZCARD", ends}), "1");
  EXPECT_EQ(server.cli({"GET", "api"}), "0");
  server.cli({"DEL", ends});  // by a client in Java whose clock is ahead
  server.cli({"INCRBY", "api", "1"});
  EXPECT_TRUE(eventually([&] { return !held->valid(); }));
  EXPECT_EQ(server.cli({"GET", "api"}), "1");
}

TEST_F(redis_redisson_permits, a_permit_is_prolonged_while_it_is_held) {
  // Broken: after a ttl Java has it, too.
  semaphore api(a, "api", {.max = 1, .lock = {.ttl = 3s}});
  auto held = api.acquire();
  ASSERT_TRUE(held) << held.error().message();
  const auto end = [&] {
    const std::string both = server.cli({"ZRANGE", ends, "0", "-1", "WITHSCORES"});
    return std::stoll(both.substr(both.rfind('\n') + 1));
  };
  const std::int64_t first = end();
  EXPECT_TRUE(eventually([&] { return end() > first; }));
  EXPECT_TRUE(held->valid());
}

TEST_F(redis_redisson_permits, the_number_that_java_has_set_is_the_number) {
  // Broken: two programs disagree about the limit, and each keeps its own.
  server.cli({"SET", "api", "5"});
  const auto refused = semaphore(a, "api", {.max = 4}).acquire({.wait = 0s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), errc::conflict);
  // And a permit of RSemaphore, of which nobody can say who holds it.
  server.cli({"DECRBY", "api", "1"});
  EXPECT_EQ(told(semaphore(a, "api", {.max = 5}).acquire({.wait = 0s})),
            std::string(describe(errc::conflict)));
  EXPECT_EQ(server.cli({"GET", "api"}), "4");
}

TEST_F(redis_redisson_permits, one_permit_can_be_taken_away_by_force_or_kept_from_being_prolonged) {
  // Broken: the wrong permit is released, or all of them.
  semaphore api(a, "api", {.max = 2, .lock = {.ttl = 6s}});
  auto one = api.acquire();
  ASSERT_TRUE(one) << one.error().message();
  take("0123456789abcdef", now() + 30'000);
  const auto state = a.inspect("api");
  ASSERT_TRUE(state);
  ASSERT_EQ(state->holders.size(), 2U);
  const bool first = state->holders[0].claim == one->claim();
  const auto taken = a.revoke("api", revocation::force, state->holders[first ? 1 : 0].claim);
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_EQ(taken->size(), 1U);
  EXPECT_EQ(server.cli({"GET", "api"}), "1");
  EXPECT_TRUE(one->valid());
  const auto revoked = a.revoke("api", revocation::safe, one->claim());
  ASSERT_TRUE(revoked) << revoked.error().message();
  EXPECT_EQ(revoked->size(), 1U);
  EXPECT_EQ(server.cli({"GET", "api"}), "1");
  EXPECT_TRUE(eventually([&] { return one->lost().stop_requested(); }));
  static_cast<void>(one->release());
  EXPECT_TRUE(eventually([&] { return server.cli({"GET", "api"}) == "2"; }));
}

TEST_F(redis_redisson_permits, other_values_are_left_alone) {
  // Broken: a lock or a text is overwritten.
  server.cli({"SET", "text", "mine"});
  server.cli({"HSET", "lock", "java:1", "1"});
  const std::string conflict(describe(errc::name_conflict));
  EXPECT_EQ(told(semaphore(a, "text", {.max = 1}).acquire({.wait = 0s})), conflict);
  EXPECT_EQ(told(semaphore(a, "lock", {.max = 1}).acquire({.wait = 0s})), conflict);
  EXPECT_EQ(told(semaphore(a, "api", {.max = 1, .lock = {.fair = true}}).acquire({.wait = 0s})),
            std::string(describe(errc::unsupported)));
}

}  // namespace
}  // namespace holdfast::test
