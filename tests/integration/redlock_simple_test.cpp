// redlock:// with dialect=simple: the same keys on the same servers as redsync, node-redlock and pottery.
#ifdef HOLDFAST_WITH_REDIS

#include "support/eventually.hpp"
#include "support/redlock_servers.hpp"

#include <holdfast/holdfast.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

client open_quorum(const std::string& url) {
  auto opened = client::open(url);
  if (!opened) throw lock_error(opened.error());
  return *std::move(opened);
}

class redlock_simple : public testing::Test {
 protected:
  redlock_servers servers{3};
  const std::string url = servers.url("dialect=simple");

  // As in the other libraries: the plain name, a majority, and a failure leaves nothing behind.
  bool take(const std::string& name, const std::string& value) {
    std::size_t votes = 0;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      if (servers[i].cli({"SET", name, value, "NX", "PX", "60000"}) == "OK") ++votes;
    }
    if (votes > servers.size() / 2) return true;
    give_back(name, value);
    return false;
  }
  void give_back(const std::string& name, const std::string& value) {
    for (std::size_t i = 0; i < servers.size(); ++i) {
      servers[i].cli({"EVAL",
                      "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', "
                      "KEYS[1]) end return 0",
                      "1", name, value});
    }
  }
};

TEST_F(redlock_simple, others_and_we_exclude_each_other) {
  // Broken: both are granted, without any error.
  const client a = open_quorum(url);
  mutex stock(a, "stock", {.ttl = 20s});
  auto lease = stock.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_FALSE(take("stock", "theirs"));
  EXPECT_TRUE(lease->valid());
  ASSERT_TRUE(lease->release());
  ASSERT_TRUE(eventually([&] { return take("stock", "theirs"); }));
  EXPECT_EQ(stock.acquire({.wait = 0s}).error().code, errc::busy);
  give_back("stock", "theirs");
  lease = stock.acquire({.wait = patience});
  EXPECT_TRUE(lease) << lease.error().message();
}

TEST_F(redlock_simple, a_minority_of_others_or_of_dead_servers_is_in_nobodys_way) {
  // Broken: one server decides.
  const client a = open_quorum(url);
  servers[0].cli({"SET", "stock", "theirs", "NX", "PX", "60000"});
  mutex stock(a, "stock", {.ttl = 20s});
  ASSERT_TRUE(stock.acquire({.wait = patience}));
  EXPECT_EQ(servers[0].cli({"GET", "stock"}), "theirs");
  servers[0].kill();
  EXPECT_TRUE(stock.acquire({.wait = patience}));
}

TEST_F(redlock_simple, three_count_exactly_and_fences_of_ours_grow) {
  // Broken: exclusion, or the order of fences.
  const client a = open_quorum(url);
  const client b = open_quorum(url);
  std::atomic<int> inside{0};
  std::atomic<int> meetings{0};
  std::atomic<std::uint64_t> last{0};
  std::atomic<int> disorder{0};
  std::vector<std::future<void>> all;
  for (const client* each : {&a, &b}) {
    all.push_back(in_thread([&, each] {
      mutex lock(*each, "stock", {.ttl = 20s});
      for (int round = 0; round < 20; ++round) {
        const auto lease = lock.acquire({.wait = patience});
        if (!lease || inside.fetch_add(1) != 0) ++meetings;
        if (lease && last.exchange(lease->fence().value()) >= lease->fence().value()) ++disorder;
        inside.fetch_sub(1);
      }
    }));
  }
  for (int round = 0; round < 10; ++round) {
    if (!eventually([&] { return take("stock", "theirs"); }) || inside.fetch_add(1) != 0) {
      ++meetings;
    }
    inside.fetch_sub(1);
    give_back("stock", "theirs");
  }
  for (auto& each : all) each.get();
  EXPECT_EQ(meetings, 0);
  EXPECT_EQ(disorder, 0);
}

TEST_F(redlock_simple, the_greatest_fence_of_a_majority_is_written_back) {
  // Broken: the next majority gives a smaller one.
  const client a = open_quorum(url);
  mutex stock(a, "stock", {.ttl = 20s});
  ASSERT_TRUE(stock.acquire({.wait = patience}));  // released at once
  const std::string beside = servers[1].cli({"KEYS", "holdfast:*f:stock"});
  servers[1].cli({"SET", beside, "5000000000000000"});
  servers[0].kill();
  auto lease = stock.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_GT(lease->fence().value(), 5'000'000'000'000'000U);
  EXPECT_GE(std::stoull(servers[2].cli({"GET", beside})), lease->fence().value());
}

TEST_F(redlock_simple, a_lease_is_renewed_at_a_majority) {
  // Broken: it ends after its ttl.
  const client a = open_quorum(url);
  const auto lease = mutex(a, "stock", {.ttl = 3s}).acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  const time_point later = clock::now() + 5s;
  EXPECT_TRUE(eventually([&] { return clock::now() > later; }));
  EXPECT_TRUE(lease->valid());
  EXPECT_FALSE(take("stock", "theirs"));
}

TEST_F(redlock_simple, what_it_cannot_is_refused) {
  // Broken: a lock that excludes nobody.
  const client a = open_quorum(url);
  EXPECT_EQ(shared_mutex(a, "x").acquire_shared().error().code, errc::unsupported);
  EXPECT_EQ(mutex(a, "x", {.fair = true}).acquire().error().code, errc::unsupported);
  EXPECT_EQ(mutex(a, "x", {.lock_delay = 1s}).acquire({.wait = 0s}).error().code,
            errc::unsupported);
  const auto redisson = client::open(servers.url("dialect=redisson"));
  ASSERT_FALSE(redisson);
  EXPECT_THAT(redisson.error().message(), testing::HasSubstr("native or simple"));
  const std::string port = std::to_string(servers[0].port());
  const client twice =
      open_quorum("redlock://127.0.0.1:" + port + ",localhost:" + port + "?dialect=simple");
  EXPECT_TRUE(eventually(
      [&] { return mutex(twice, "y").acquire({.wait = 0s}).error().code == errc::invalid; }));
}

}  // namespace
}  // namespace holdfast::test

#endif
