// dialect=simple: the format that other libraries use, in both directions.
#include "integration/redis_store_harness.hpp"
#include "support/also_longer.hpp"

#include <holdfast/spi/url.hpp>

namespace holdfast::test {
namespace {

class redis_simple : public testing::Test {
 protected:
  redis_server server;
  const std::string url = redis_url(server.port(), "?dialect=simple");
  client a = open_client(url);
  client b = open_client(url);
};

TEST_F(redis_simple, the_lock_is_a_string_under_the_plain_name_that_ends) {
  // Broken: redis-py, redsync and others would not see our locks.
  mutex lock(a, "orders/42", {.ttl = 20s});
  auto lease = lock.acquire();
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_EQ(server.cli({"TYPE", "orders/42"}), "string");
  EXPECT_EQ(server.cli({"STRLEN", "orders/42"}), "32");
  const long left = std::stol(server.cli({"PTTL", "orders/42"}));
  EXPECT_GT(left, 10'000);
  EXPECT_LE(left, 20'000);
  EXPECT_EQ(told(lease->release()), "ok");
  EXPECT_EQ(server.cli({"EXISTS", "orders/42"}), "0");
}

TEST_F(redis_simple, a_lock_of_another_library_is_respected_and_shown_without_a_fence) {
  // Broken: we would take or delete what others hold.
  server.cli({"SET", "stock", "somebody-else", "NX", "PX", "60000"});
  mutex lock(a, "stock");
  EXPECT_EQ(told(lock.acquire({.wait = 0s})), std::string(describe(errc::busy)));
  const auto state = a.inspect("stock");
  ASSERT_TRUE(state);
  ASSERT_EQ(state->holders.size(), 1U);
  EXPECT_FALSE(state->holders[0].fence.has_value());
  EXPECT_EQ(server.cli({"GET", "stock"}), "somebody-else");
  server.cli({"PEXPIRE", "stock", "300"});
  EXPECT_EQ(told(lock.acquire({.wait = patience})), "ok");  // it ended
}

TEST_F(redis_simple, fences_grow_and_leases_are_renewed) {
  // Broken: a lock without fence or renewal.
  fence_token last;
  for (int i = 0; i < 5; ++i) {
    auto lease = mutex(a, "stock").acquire();
    ASSERT_TRUE(lease);
    EXPECT_GT(lease->fence(), last);
    last = lease->fence();
  }
  EXPECT_TRUE(also_longer(300ms, [&](duration ttl) {
    const auto lease = mutex(a, "stock", {.ttl = ttl}).acquire();
    EXPECT_EQ(told(lease), "ok");
    if (!lease) return testing::AssertionFailure() << "not granted";
    const time_point later = clock::now() + 2 * ttl;
    EXPECT_TRUE(eventually([&] { return clock::now() > later; }, 3 * ttl + patience));
    const auto other = mutex(b, "stock").acquire({.wait = 0s});
    if (!lease->valid()) return testing::AssertionFailure() << "lost";
    EXPECT_EQ(told(other), std::string(describe(errc::busy)));
    return testing::AssertionSuccess();
  }));
}

TEST_F(redis_simple, a_fence_that_was_handed_on_in_a_process_is_given_to_nobody_else) {
  // Broken: after the server's clock was set back, two holders have the same fence.
  mutex lock(a, "stock");
  ASSERT_TRUE(lock.acquire());  // released at once
  const std::string beside = server.cli({"KEYS", "holdfast:*f:stock"});
  server.cli({"SET", beside, "5000000000000000"});
  auto held = lock.acquire();
  ASSERT_TRUE(held);
  ASSERT_GT(held->fence().value(), 5'000'000'000'000'000U);
  for (int i = 0; i < 10; ++i) {
    auto next = in_thread([&] { return lock.acquire({.wait = patience}); });
    ASSERT_FALSE(arrives(next, 200us));
    EXPECT_EQ(told(held->release()), "ok");
    held = next.get();
    ASSERT_TRUE(held);
  }
  const fence_token last = held->fence();
  EXPECT_EQ(told(held->release()), "ok");
  const auto others = mutex(b, "stock").acquire();
  ASSERT_TRUE(others);
  EXPECT_GT(others->fence(), last);
}

TEST_F(redis_simple, many_threads_of_two_clients_never_hold_together) {
  // Broken: exclusion.
  std::atomic<int> inside{0};
  std::atomic<int> meetings{0};
  std::vector<std::future<void>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(in_thread([&, i] {
      mutex lock(i % 2 == 0 ? a : b, "stock", {.ttl = 5s});
      for (int round = 0; round < 20; ++round) {
        const auto lease = lock.acquire({.wait = patience});
        if (!lease || inside.fetch_add(1) != 0) ++meetings;
        inside.fetch_sub(1);
      }
    }));
  }
  for (auto& each : all) each.get();
  EXPECT_EQ(meetings, 0);
}

TEST_F(redis_simple, what_the_format_cannot_is_refused) {
  // Broken: a shared lock that excludes nobody, or a foreign value destroyed.
  const std::string no(describe(errc::unsupported));
  EXPECT_EQ(told(shared_mutex(a, "x").acquire_shared()), no);
  EXPECT_EQ(told(semaphore(a, "x", {.max = 2, .lock = {}}).acquire()), no);
  EXPECT_EQ(told(mutex(a, "x", {.fair = true}).acquire()), no);
  EXPECT_EQ(told(latch(a, "x").set(2)), no);
  EXPECT_EQ(told(a.list("")), no);
  server.cli({"LPUSH", "list", "mine"});
  EXPECT_EQ(told(mutex(a, "list").acquire({.wait = patience})),
            std::string(describe(errc::name_conflict)));
  EXPECT_EQ(server.cli({"LLEN", "list"}), "1");
}

TEST(redis_simple_python, a_release_wakes_a_waiter_of_python_redis_lock) {
  // Broken: it sleeps in BLPOP, without a limit if its locks have no expiry.
  const redis_server server;
  const client mine = open_client(redis_url(server.port(), "?dialect=python-redis-lock"));
  auto held = mutex(mine, "stock").acquire();
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(server.cli({"STRLEN", "lock:stock"}), "32");
  auto waiting = in_thread([&] { return server.cli({"BLPOP", "lock-signal:stock", "60"}); });
  ASSERT_TRUE(eventually([&] {
    return server.cli({"INFO", "clients"}).find("blocked_clients:1") != std::string::npos;
  }));
  EXPECT_EQ(told(held->release()), "ok");
  EXPECT_EQ(waiting.get(), "lock-signal:stock\n1");
  EXPECT_EQ(server.cli({"EXISTS", "lock:stock"}), "0");
}

TEST(redis_simple_python, its_lock_is_respected_and_its_signal_has_an_end) {
  // Broken: two inside, or a list that stays for each name that was ever locked.
  const redis_server server;
  const client mine = open_client(redis_url(server.port(), "?dialect=python-redis-lock"));
  server.cli({"SET", "lock:stock", "theirs", "NX"});
  mutex lock(mine, "stock");
  EXPECT_EQ(told(lock.acquire({.wait = 0s})), std::string(describe(errc::busy)));
  auto waiting = in_thread([&] { return lock.acquire({.wait = patience}); });
  server.cli({"DEL", "lock:stock"});
  auto held = waiting.get();
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(told(held->release()), "ok");
  EXPECT_EQ(server.cli({"KEYS", "lock:*"}), "");
  EXPECT_TRUE(eventually([&] { return server.cli({"EXISTS", "lock-signal:stock"}) == "0"; }));
}

TEST(redis_url, what_is_wrong_with_a_url_is_said) {
  // Broken: an option with a typing error would be ignored, and TLS be off.
  const auto refused = [](const std::string& url) {
    const auto opened = client::open(url);
    return opened ? std::string("opened") : opened.error().message();
  };
  using testing::HasSubstr;
  EXPECT_THAT(refused("redis://h?ofer=2s"), HasSubstr("known: dialect, offer"));
  EXPECT_THAT(refused("redis://h?dialect=redis"),
              HasSubstr("native, simple, python-redis-lock or redisson"));
  EXPECT_THAT(refused("redis://h?offer=2"), HasSubstr("250ms or 2s"));
  EXPECT_THAT(refused("redis://h?ca=/x"), HasSubstr("rediss://"));
  EXPECT_THAT(refused("rediss://h?verify=no"), HasSubstr("full or none"));
  EXPECT_THAT(refused("rediss://h?ca=/nowhere/ca.pem"), HasSubstr("ca"));
  EXPECT_THAT(refused("redis://h/shop"), HasSubstr("number"));
  EXPECT_THAT(refused("redis://h1,h2"), HasSubstr("one host"));
  EXPECT_THAT(refused("redis://"), HasSubstr("host"));
  EXPECT_THAT(refused("redis://user@h"), HasSubstr("password"));
}

TEST(redis_url, valkey_is_another_spelling) {
  // Broken: no such scheme; or two names for one server that do not exclude each other.
  const redis_server server;
  const std::string rest = "://127.0.0.1:" + std::to_string(server.port());
  const client by_redis = open_client("redis" + rest);
  const client by_valkey = open_client("valkey" + rest);
  const auto held = mutex(by_valkey, "stock").acquire();
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(told(mutex(by_redis, "stock").acquire({.wait = 0s})),
            std::string(describe(errc::busy)));
  const auto named = [](const char* text) { return spi::parse_url(text).value().scheme; };
  EXPECT_EQ(named("valkeys://h"), "rediss");
  EXPECT_EQ(named("valkey+sentinel://h/m"), "redis+sentinel");
  EXPECT_EQ(named("valkey+cluster://h"), "redis+cluster");
  EXPECT_EQ(named("valkeyx://h"), "valkeyx");
}

TEST(redis_url, a_database_and_a_unix_socket_can_be_given) {
  // Broken: locks would be in another database than requested.
  const redis_server server;
  const client by_socket = open_client("redis://localhost/3?socket=" + server.socket());
  mutex lock(by_socket, "stock");
  ASSERT_TRUE(lock.acquire());
  EXPECT_EQ(server.cli({"-n", "3", "DBSIZE"}), "1");
  EXPECT_EQ(server.cli({"DBSIZE"}), "0");
}

}  // namespace
}  // namespace holdfast::test
