// dialect=redisson: Redisson's RLock, in both directions. Redisson's part is played by the commands
// that its scripts send; `make interop` runs the library itself.
#include "integration/redis_store_harness.hpp"
#include "stores/table.hpp"
#include "support/child_process.hpp"
#include "support/temporary_folder.hpp"

#include <fstream>
#include <future>
#include <iterator>

namespace holdfast::test {
namespace {

class redis_redisson : public testing::Test {
 protected:
  redis_server server;
  temporary_folder folder;
  client a = open_client(redis_url(server.port(), "?dialect=redisson&connect_timeout=60s"));
  const std::string java = "8743c9c0-0795-4907-87fd-6c719a6b4586:74";

  // As RLock.lock(30 s) and unlock() do if nobody else holds it.
  void take(const std::string& name) {
    server.cli({"HINCRBY", name, java, "1"});
    server.cli({"PEXPIRE", name, "30000"});
  }
  void give_back(const std::string& name) { server.cli({"DEL", name}); }
  [[nodiscard]] std::string heard() const {
    std::ifstream from(folder.path() / "heard");
    return {std::istreambuf_iterator<char>(from), {}};
  }
};

TEST_F(redis_redisson, the_lock_is_a_hash_with_one_owner_that_ends) {
  // Broken: Redisson would not see our locks, or wait for one forever.
  mutex lock(a, "orders/42", {.ttl = 20s});
  auto lease = lock.acquire();
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_EQ(server.cli({"TYPE", "orders/42"}), "hash");
  EXPECT_EQ(server.cli({"HVALS", "orders/42"}), "1");
  EXPECT_THAT(
      server.cli({"HKEYS", "orders/42"}),
      testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:0"));
  const long left = std::stol(server.cli({"PTTL", "orders/42"}));
  EXPECT_GT(left, 10'000);
  EXPECT_LE(left, 20'000);
  EXPECT_EQ(told(lease->release()), "ok");
  EXPECT_EQ(server.cli({"EXISTS", "orders/42"}), "0");
}

TEST_F(redis_redisson, a_lock_that_redisson_holds_is_respected_and_taken_when_it_is_free) {
  // Broken: two inside.
  take("stock");
  mutex lock(a, "stock");
  EXPECT_EQ(told(lock.acquire({.wait = 0s})), std::string(describe(errc::busy)));
  const auto state = a.inspect("stock");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->holders.size(), 1U);
  auto waiting = in_thread([&] { return told(lock.acquire({.wait = patience})); });
  give_back("stock");
  EXPECT_EQ(waiting.get(), "ok");
}

TEST_F(redis_redisson, a_release_is_published_as_redisson_reads_it) {
  // Broken: a waiter in Java sleeps until our lease would have ended; or its decoder throws.
  for (const std::string name : {"stock", "{shop}:stock"}) {
    const std::string channel =
        "redisson_lock__channel:" + (name == "stock" ? "{stock}" : std::string(name));
    child_process message_listener(
        {"redis-cli", "-p", std::to_string(server.port()), "SUBSCRIBE", channel},
        folder.path() / "heard");
    ASSERT_TRUE(eventually([&] { return heard().ends_with("subscribe\n" + channel + "\n1\n"); }));
    ASSERT_TRUE(mutex(a, name).acquire());  // released at once
    EXPECT_TRUE(eventually([&] { return heard().ends_with("message\n" + channel + "\n0\n"); }))
        << heard();
  }
}

TEST_F(redis_redisson, fences_are_the_tokens_of_redissons_fenced_lock) {
  // Broken: a token from Java would be smaller than an earlier fence.
  mutex lock(a, "stock");
  auto first = lock.acquire();
  ASSERT_TRUE(first);
  // The rest is for hand-overs inside this process.
  EXPECT_GE(std::stoull(server.cli({"GET", "redisson_lock_token:{stock}"})),
            first->fence().value());
  EXPECT_EQ(server.cli({"TTL", "redisson_lock_token:{stock}"}), "-1");
  EXPECT_EQ(told(first->release()), "ok");
  const std::uint64_t token = std::stoull(server.cli({"INCR", "redisson_lock_token:{stock}"}));
  EXPECT_GT(token, first->fence().value());
  const auto second = lock.acquire();
  ASSERT_TRUE(second);
  EXPECT_GT(second->fence().value(), token);
}

TEST_F(redis_redisson, a_token_from_java_is_greater_than_what_was_handed_on_in_this_process) {
  // Broken: a thread that was handed the lock and the next holder in Java have the same number.
  mutex lock(a, "stock");
  auto held = lock.acquire();
  ASSERT_TRUE(held) << held.error().message();
  for (int i = 0; i < 20; ++i) {
    auto next = in_thread([&] { return lock.acquire({.wait = patience}); });
    ASSERT_FALSE(arrives(next, 1ms));
    EXPECT_EQ(told(held->release()), "ok");
    held = next.get();
    ASSERT_TRUE(held) << held.error().message();
    const std::uint64_t mine = held->fence().value();
    EXPECT_GT(std::stoull(server.cli({"GET", "redisson_lock_token:{stock}"})) + 1, mine);
  }
}

TEST_F(redis_redisson, a_release_needs_no_memory_even_if_an_attempt_was_not_answered) {
  // Broken: a full server keeps a lock until its ttl ends.
  const auto runtime = spi::make_reactor();
  const auto store =
      stores::open(spi::parse_url(redis_url(server.port(), "?dialect=redisson")).value(), runtime)
          .value();
  auto claim = std::make_shared<spi::claim>();
  claim->id.bytes[0] = 7;
  claim->resource = {"", "stock"};
  claim->ttl = 20s;
  const auto soon = [&](bool unanswered) {
    return spi::op_context{.deadline = runtime->now() + 10s, .unanswered = unanswered};
  };
  std::promise<bool> granted;
  store->attempt(claim, nullptr, soon(false), [&](const result<spi::outcome>& answer) {
    granted.set_value(answer && std::holds_alternative<spi::granted>(*answer));
  });
  ASSERT_TRUE(granted.get_future().get());
  server.cli({"CONFIG", "SET", "maxmemory", "1"});
  std::promise<std::string> left;
  store->leave(claim, soon(true), [&](const result<spi::departure>& answer) {
    left.set_value(answer ? "left" : answer.error().message());
  });
  EXPECT_EQ(left.get_future().get(), "left");
  server.cli({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(server.cli({"EXISTS", "stock"}), "0");
  store->close();
}

TEST_F(redis_redisson, a_release_by_redisson_is_heard_at_once) {
  // Broken: we poll once a second, and others are faster.
  take("stock");
  mutex lock(a, "stock");
  auto waiting = in_thread([&] { return told(lock.acquire({.wait = patience})); });
  ASSERT_TRUE(eventually([&] {
    return server.cli({"PUBSUB", "NUMSUB", "redisson_lock__channel:{stock}"}).ends_with("1");
  }));
  give_back("stock");
  server.cli({"PUBLISH", "redisson_lock__channel:{stock}", "0"});
  EXPECT_EQ(waiting.get(), "ok");
  EXPECT_TRUE(eventually([&] {
    return server.cli({"PUBSUB", "NUMSUB", "redisson_lock__channel:{stock}"}).ends_with("0");
  })) << "listens though nobody waits";
}

TEST_F(redis_redisson, a_name_of_its_read_write_lock_is_refused_and_left_alone) {
  // Broken: two inside, and then our release deletes its hash.
  server.cli({"HSET", "stock", "mode", "write", java + ":write", "1"});
  server.cli({"PEXPIRE", "stock", "30000"});
  mutex lock(a, "stock");
  EXPECT_EQ(told(lock.acquire({.wait = 0s})), std::string(describe(errc::name_conflict)));
  EXPECT_EQ(server.cli({"HLEN", "stock"}), "2");
}

TEST_F(redis_redisson, a_release_leaves_what_is_not_ours) {
  mutex lock(a, "stock");
  auto lease = lock.acquire();
  ASSERT_TRUE(lease) << lease.error().message();
  server.cli({"HSET", "stock", "mode", "write", java + ":write", "1"});
  EXPECT_EQ(told(lease->release()), "ok");
  EXPECT_EQ(server.cli({"HLEN", "stock"}), "2");
}

TEST_F(redis_redisson, a_read_write_lock_taken_beside_us_ends_our_lease) {
  // Broken: we continue to assume that we are alone.
  mutex lock(a, "stock", {.ttl = 3s});
  auto lease = lock.acquire();
  ASSERT_TRUE(lease) << lease.error().message();
  server.cli({"HSET", "stock", "mode", "write", java + ":write", "1"});
  server.cli({"PERSIST", "stock"});
  EXPECT_TRUE(eventually([&] { return !lease->valid(); }));
  EXPECT_EQ(server.cli({"HLEN", "stock"}), "2");
}

TEST_F(redis_redisson, what_is_not_shared_is_refused) {
  // Broken: a shared lock that excludes nobody, or a foreign value destroyed.
  const std::string no(describe(errc::unsupported));
  EXPECT_EQ(told(shared_mutex(a, "x", {.fair = true}).acquire()), no);
  server.cli({"SET", "text", "mine"});
  EXPECT_EQ(told(mutex(a, "text").acquire({.wait = patience})),
            std::string(describe(errc::name_conflict)));
  EXPECT_EQ(server.cli({"GET", "text"}), "mine");
}

}  // namespace
}  // namespace holdfast::test
