// Forced and safe revocation in the foreign dialects: of our locks and of other libraries' locks,
// whose commands are sent here by hand.
#include "integration/redis_listening.hpp"

namespace holdfast::test {
namespace {

class redis_foreign_revocation : public redis_listening {
 protected:
  const std::string java = "8743c9c0-0795-4907-87fd-6c719a6b4586:74";

  [[nodiscard]] client open(const std::string& dialect) const {
    return open_client(redis_url(server.port(), "?dialect=" + dialect));
  }
  // As RLock.lock(30 s) does.
  void take(const std::string& name) const {
    server.cli({"HINCRBY", name, java, "1"});
    server.cli({"PEXPIRE", name, "30000"});
  }
  [[nodiscard]] std::size_t taken(client from, const std::string& name,
                                  const std::string& claim = {},
                                  revocation how = revocation::force) const {
    const auto answer = from.revoke(name, how, claim);
    EXPECT_TRUE(answer) << answer.error().message();
    return answer ? answer->size() : 99;
  }
};

TEST_F(redis_foreign_revocation, a_lock_of_redisson_is_deleted_and_its_waiters_are_notified) {
  // Broken: an operator has to delete keys by hand, and a waiter in Java sleeps until the ttl ends.
  take("stock");
  const std::string channel = "redisson_lock__channel:{stock}";
  const child_process message_listener = listen_to(channel);
  EXPECT_EQ(taken(open("redisson"), "stock"), 1U);
  EXPECT_TRUE(hears(channel, "0")) << heard();
  EXPECT_EQ(server.cli({"EXISTS", "stock"}), "0");
  EXPECT_EQ(taken(open("redisson"), "stock"), 0U);
}

TEST_F(redis_foreign_revocation, only_the_holder_that_was_looked_at_loses_it) {
  // Broken: the operator looked at a hung thread; by the time of the release another one has the
  // lock.
  take("stock");
  client mine = open("redisson");
  const auto state = mine.inspect("stock");
  ASSERT_TRUE(state);
  ASSERT_EQ(state->holders.size(), 1U);
  const std::string seen = state->holders[0].claim;
  EXPECT_EQ(seen.find("8743"), std::string::npos) << "the owner is the key to the lock";
  server.cli({"DEL", "stock"});
  auto next = mutex(mine, "stock", {.ttl = 20s}).acquire();
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_EQ(taken(mine, "stock", seen), 0U);
  EXPECT_TRUE(next->valid());
  EXPECT_EQ(server.cli({"HLEN", "stock"}), "1");
  EXPECT_EQ(taken(mine, "stock", next->claim()), 1U);
  EXPECT_EQ(server.cli({"EXISTS", "stock"}), "0");
}

TEST_F(redis_foreign_revocation, readers_and_writers_of_redisson_are_taken_away_one_by_one) {
  // Broken: the whole lock is deleted under an uninvolved reader.
  client mine = open("redisson");
  auto ours = shared_mutex(mine, "price", {.ttl = 20s}).acquire_shared();
  ASSERT_TRUE(ours) << ours.error().message();
  server.cli({"HINCRBY", "price", java, "1"});
  server.cli({"SET", "{price}:" + java + ":rwlock_timeout:1", "1", "PX", "30000"});
  const auto state = mine.inspect("price");
  ASSERT_TRUE(state);
  ASSERT_EQ(state->holders.size(), 2U);
  const bool first = state->holders[0].claim == ours->claim();
  EXPECT_EQ(taken(mine, "price", state->holders[first ? 1 : 0].claim), 1U);
  EXPECT_TRUE(ours->valid());
  EXPECT_EQ(server.cli({"HEXISTS", "price", java}), "0");
  EXPECT_EQ(server.cli({"HLEN", "price"}), "2");
  const std::string channel = "redisson_rwlock:{price}";
  const child_process message_listener = listen_to(channel);
  EXPECT_EQ(taken(mine, "price"), 1U);
  EXPECT_TRUE(hears(channel, "0")) << heard();
  server.cli({"HSET", "price", "mode", "write", java + ":write", "1"});
  server.cli({"PEXPIRE", "price", "30000"});
  EXPECT_EQ(taken(mine, "price"), 1U);
  EXPECT_TRUE(hears(channel, "1")) << heard();
  EXPECT_EQ(server.cli({"EXISTS", "price"}), "0");
}

TEST_F(redis_foreign_revocation, a_lock_of_redis_py_without_an_end_is_only_taken_by_force) {
  // Broken: a process that died without a ttl blocks the lock forever; or a safe revocation never
  // ends.
  server.cli({"SET", "stock", "somebody-else", "NX"});
  client mine = open("simple");
  EXPECT_EQ(told(mine.revoke("stock", revocation::safe)), std::string(describe(errc::unsupported)));
  EXPECT_EQ(server.cli({"GET", "stock"}), "somebody-else");
  EXPECT_EQ(taken(mine, "stock"), 1U);
  EXPECT_EQ(server.cli({"EXISTS", "stock"}), "0");
}

TEST_F(redis_foreign_revocation, a_waiter_of_python_redis_lock_is_woken) {
  // Broken: it sleeps in BLPOP, without a limit if its locks have no expiry.
  server.cli({"SET", "lock:stock", "theirs", "NX"});
  auto waiting = in_thread([&] { return server.cli({"BLPOP", "lock-signal:stock", "60"}); });
  ASSERT_TRUE(eventually([&] {
    return server.cli({"INFO", "clients"}).find("blocked_clients:1") != std::string::npos;
  }));
  EXPECT_EQ(taken(open("python-redis-lock"), "stock"), 1U);
  EXPECT_EQ(waiting.get(), "lock-signal:stock\n1");
  EXPECT_EQ(server.cli({"EXISTS", "lock:stock"}), "0");
}

TEST_F(redis_foreign_revocation,
       a_safe_one_keeps_the_lock_shut_until_its_end_and_nobody_prolongs_it) {
  // Broken: Redisson's watchdog, which goes by the owner, renews what was revoked; or two are inside.
  take("stock");
  client mine = open("redisson");
  EXPECT_EQ(taken(mine, "stock", {}, revocation::safe), 1U);
  EXPECT_EQ(server.cli({"HEXISTS", "stock", java}), "0");  // as the watchdog asks
  const long left = std::stol(server.cli({"PTTL", "stock"}));
  EXPECT_GT(left, 5'000);
  EXPECT_LE(left, 30'000);
  EXPECT_EQ(told(mutex(mine, "stock").acquire({.wait = 0s})), std::string(describe(errc::busy)));
  server.cli({"PEXPIRE", "stock", "50"});
  EXPECT_EQ(told(mutex(mine, "stock").acquire({.wait = patience})), "ok");
}

TEST_F(redis_foreign_revocation, readers_that_were_revoked_free_the_lock_when_they_stop) {
  // Broken: a reader was notified and has stopped, but keeps writers out for the rest of its ttl.
  client mine = open("redisson");
  auto ours = shared_mutex(mine, "price", {.ttl = 6s}).acquire_shared();
  ASSERT_TRUE(ours) << ours.error().message();
  EXPECT_EQ(taken(mine, "price", ours->claim(), revocation::safe), 1U);
  EXPECT_EQ(server.cli({"KEYS", "{price}:*:revoked:rwlock_timeout:1"}).empty(), false);
  ASSERT_TRUE(eventually([&] { return ours->lost().stop_requested(); }));
  static_cast<void>(ours->release());
  EXPECT_TRUE(eventually([&] { return server.cli({"EXISTS", "price"}) == "0"; }));
  EXPECT_EQ(server.cli({"KEYS", "{price}:*"}), "");
}

}  // namespace
}  // namespace holdfast::test
