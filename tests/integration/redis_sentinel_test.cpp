// Locks behind sentinels: the master is found, and followed when another takes its place. All tests
// share one master with two replicas and three sentinels.
#include "contract/contract.hpp"
#include "support/redis_sentinels.hpp"

#include <holdfast/holdfast.hpp>

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

class redis_sentinel : public testing::Test {
 protected:
  static void SetUpTestSuite() { servers_ = std::make_unique<redis_sentinels>(); }
  static void TearDownTestSuite() { servers_.reset(); }

  [[nodiscard]] static redis_sentinels& servers() { return *servers_; }
  [[nodiscard]] static client open() { return client::open(servers().url()).value(); }
  void SetUp() override {
    ASSERT_TRUE(eventually([] { return servers().settled(); }, 4 * patience));
  }

 private:
  static inline std::unique_ptr<redis_sentinels> servers_;
};

TEST_F(redis_sentinel, the_master_is_found_and_the_replicas_are_not_written) {
  // Broken: a lock is requested from a replica.
  const client one = open();
  mutex stock(one, "stock");
  const auto held = stock.acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  EXPECT_NE(servers().master().cli({"DBSIZE"}), "0");
  const client other = open();
  EXPECT_TRUE(eventually([&] { return holders(other, "stock") == 1; }));
  EXPECT_EQ(one.list("").value().size(), 1U);
}

TEST_F(redis_sentinel, a_waiter_is_granted_by_the_next_master) {
  // Broken (H49): a client that waits when the master changes waits forever, at a server that is no
  // longer master.
  const client holding = open();
  const client waiting = open();
  mutex first(holding, "stock", {.ttl = 20s});
  mutex second(waiting, "stock", {.ttl = 20s});
  auto held = first.acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  auto granted = in_thread([&] { return second.acquire({.wait = 6 * patience}); });
  ASSERT_TRUE(has_waiters(open(), "stock", 1));
  const auto before = servers().master().port();
  servers().fail_over();
  EXPECT_NE(servers().master().port(), before);
  const fence_token fence = held->fence();
  static_cast<void>(held->release());
  ASSERT_TRUE(arrives(granted, 4 * patience));
  const auto next = granted.get();
  ASSERT_THAT(next, succeeds());
  EXPECT_GT(next->fence(), fence);
}

TEST_F(redis_sentinel, the_next_master_has_the_functions_or_they_are_loaded_again) {
  // Broken: no lock could be taken after a failover, or after FUNCTION FLUSH on the new master.
  const client one = open();
  const auto takes = [&] {
    mutex lock(one, "loaded");
    auto mine = lock.acquire({.wait = 4 * patience});
    ASSERT_THAT(mine, succeeds());
    EXPECT_TRUE(mine->release());
  };
  takes();
  servers().fail_over();
  takes();
  servers().master().cli({"FUNCTION", "FLUSH"});
  takes();
  EXPECT_NE(servers().master().cli({"FUNCTION", "LIST"}).find("holdfast_"), std::string::npos);
}

TEST_F(redis_sentinel, a_killed_master_is_replaced_and_fences_grow_though_locks_may_be_lost) {
  // Broken (H44, H12): after a failover nobody is granted anything, or the fence starts over, and a
  // former holder is valid again. And (H45): the former master, which comes back as master for a
  // while, is written to.
  const client one = open();
  mutex stock(one, "stock", {.ttl = 1s});
  const auto before = stock.acquire({.wait = patience});
  ASSERT_THAT(before, succeeds());
  servers().replace_after(1s);
  redis_server& killed = servers().master();
  killed.kill();
  const client other = open();
  mutex same(other, "stock", {.ttl = 1s});
  const auto after = same.acquire({.wait = 4 * patience});
  killed.start();
  ASSERT_THAT(after, succeeds());
  EXPECT_GT(after->fence(), before->fence());
  mutex more(other, "more");
  EXPECT_TRUE(eventually([&] {
    EXPECT_THAT(more.acquire({.wait = patience}), succeeds());
    return killed.cli_if_answered({"ROLE"}).starts_with("slave");
  }));
  EXPECT_EQ(killed.cli({"INFO", "commandstats"}).find("cmdstat_eval"), std::string::npos);
  servers().replace_after(redis_sentinels::not_within_a_test);
}

TEST_F(redis_sentinel, a_name_that_no_sentinel_knows_is_said) {
  // Broken: a typing error in the URL looks like an outage.
  std::string url = servers().url();
  url.replace(url.rfind('/'), std::string::npos, "/nobody");
  const client one = client::open(url).value();
  mutex stock(one, "stock");
  const auto answer = stock.acquire({.wait = patience});
  ASSERT_THAT(answer, fails_with(errc::denied));
  EXPECT_THAT(answer.error().detail, testing::HasSubstr("nobody"));
}

TEST_F(redis_sentinel, one_sentinel_that_answers_is_enough) {
  // Broken: a machine that is down and named first keeps everybody out.
  std::string url = servers().url();
  url.insert(url.find("//") + 2, "127.0.0.1:1,");
  const client one = client::open(url).value();
  mutex stock(one, "stock");
  EXPECT_THAT(stock.acquire({.wait = patience}), succeeds());
}

}  // namespace
}  // namespace holdfast::test
