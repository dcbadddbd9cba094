// dialect=redisson: Redisson's RLock, in both directions. What Redisson does is done here by the commands that
// its scripts send; `make interop-redisson` runs the library itself.
#include "integration/redis_store_harness.hpp"
#include "support/child_process.hpp"
#include "support/temporary_folder.hpp"

#include <fstream>
#include <iterator>

namespace holdfast::test {
namespace {

class redis_redisson : public testing::Test {
 protected:
  redis_server server;
  temporary_folder folder;
  client a = open_client(redis_url(server.port(), "?dialect=redisson"));
  const std::string java = "8743c9c0-0795-4907-87fd-6c719a6b4586:74";

  // As RLock.lock(30 s) and unlock() do, where nobody else holds it.
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
  // Broken: Redisson would not see our locks, or wait for one for ever.
  mutex lock(a, "orders/42", {.ttl = 20s});
  auto lease = lock.acquire();
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_EQ(server.cli({"TYPE", "orders/42"}), "hash");
  EXPECT_EQ(server.cli({"HVALS", "orders/42"}), "1");
  EXPECT_THAT(
      server.cli({"HKEYS", "orders/42"}),
      testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:1"));
  const long left = std::stol(server.cli({"PTTL", "orders/42"}));
  EXPECT_GT(left, 10'000);
  EXPECT_LE(left, 20'000);
  EXPECT_EQ(told(lease->release()), "ok");
  EXPECT_EQ(server.cli({"EXISTS", "orders/42"}), "0");
}

TEST_F(redis_redisson, a_lock_that_redisson_holds_is_respected_and_taken_when_it_is_free) {
  // Broken: two inside.
  take("stock");
  mutex lock(a, "stock", {.ttl = 5s});
  EXPECT_EQ(told(lock.acquire({.wait = 0s})), std::string(describe(errc::busy)));
  const auto state = a.inspect("stock");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->holders.size(), 1U);
  auto waiting = in_thread([&] { return told(lock.acquire({.wait = patience})); });
  give_back("stock");
  EXPECT_EQ(waiting.get(), "ok");
}

TEST_F(redis_redisson, a_release_is_published_as_redisson_reads_it) {
  // Broken: who waits in Java sleeps until our lease would have ended; or its decoder throws.
  for (const std::string name : {"stock", "{shop}:stock"}) {
    const std::string channel =
        "redisson_lock__channel:" + (name == "stock" ? "{stock}" : std::string(name));
    child_process ear({"redis-cli", "-p", std::to_string(server.port()), "SUBSCRIBE", channel},
                      folder.path() / "heard");
    ASSERT_TRUE(eventually([&] { return heard().ends_with("subscribe\n" + channel + "\n1\n"); }));
    ASSERT_TRUE(mutex(a, name).acquire());  // given back at once
    EXPECT_TRUE(eventually([&] { return heard().ends_with("message\n" + channel + "\n0\n"); }))
        << heard();
  }
}

TEST_F(redis_redisson, fences_are_the_tokens_of_redissons_fenced_lock) {
  // Broken: a token from Java would be smaller than a fence that was given before it.
  mutex lock(a, "stock");
  auto first = lock.acquire();
  ASSERT_TRUE(first);
  EXPECT_EQ(server.cli({"GET", "redisson_lock_token:{stock}"}),
            std::to_string(first->fence().value()));
  EXPECT_EQ(server.cli({"TTL", "redisson_lock_token:{stock}"}), "-1");
  EXPECT_EQ(told(first->release()), "ok");
  const std::uint64_t token = std::stoull(server.cli({"INCR", "redisson_lock_token:{stock}"}));
  EXPECT_GT(token, first->fence().value());
  const auto second = lock.acquire();
  ASSERT_TRUE(second);
  EXPECT_GT(second->fence().value(), token);
}

TEST_F(redis_redisson, what_is_not_shared_is_refused) {
  // Broken: a shared lock that excludes nobody, or a foreign value destroyed.
  const std::string no(describe(errc::unsupported));
  EXPECT_EQ(told(shared_mutex(a, "x").acquire_shared()), no);
  EXPECT_EQ(told(semaphore(a, "x", {.max = 2, .lock = {}}).acquire()), no);
  EXPECT_EQ(told(mutex(a, "x", {.fair = true}).acquire()), no);
  server.cli({"SET", "text", "mine"});
  EXPECT_EQ(told(mutex(a, "text").acquire({.wait = 1s})),
            std::string(describe(errc::name_conflict)));
  EXPECT_EQ(server.cli({"GET", "text"}), "mine");
}

}  // namespace
}  // namespace holdfast::test
