// dialect=redisson: its read-write lock, its latch and the waiters of its fair lock. Redisson's
// part is played by the commands that its scripts send; `make interop` runs the library itself.
#include "integration/redis_listening.hpp"

namespace holdfast::test {
namespace {

class redis_redisson_others : public redis_listening {
 protected:
  client a = open_client(redis_url(server.port(), "?dialect=redisson"));
  client b = open_client(redis_url(server.port(), "?dialect=redisson"));
  const std::string java = "8743c9c0-0795-4907-87fd-6c719a6b4586:74";
  const std::string busy{describe(errc::busy)};

  // As readLock().lock(ms) and writeLock().lock(ms) do if nobody is in the way.
  void read(const std::string& name, const std::string& who, const std::string& ms = "30000") {
    server.cli({"HSET", name, "mode", "read"});
    const std::string hold = server.cli({"HINCRBY", name, who, "1"});
    server.cli({"SET", "{" + name + "}:" + who + ":rwlock_timeout:" + hold, "1", "PX", ms});
    server.cli({"PEXPIRE", name, ms});
  }
  void write(const std::string& name) {
    server.cli({"HSET", name, "mode", "write", java + ":write", "1"});
    server.cli({"PEXPIRE", name, "30000"});
  }
  [[nodiscard]] bool listened(const std::string& channel) const {
    return eventually([&] { return server.cli({"PUBSUB", "NUMSUB", channel}).ends_with("1"); });
  }
  [[nodiscard]] std::string keys() const { return server.cli({"KEYS", "*rwlock_timeout*"}); }
};

TEST_F(redis_redisson_others, a_reader_is_a_field_and_a_key_that_ends) {
  // Broken: Redisson's unlock does not see our readers, and deletes the lock under them.
  auto reading = shared_mutex(a, "price", {.ttl = 20s}).acquire_shared();
  ASSERT_TRUE(reading) << reading.error().message();
  EXPECT_EQ(server.cli({"HGET", "price", "mode"}), "read");
  EXPECT_EQ(server.cli({"HLEN", "price"}), "2");
  const std::string uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
  const std::string end = keys();
  EXPECT_THAT(end, testing::MatchesRegex("\\{price\\}:" + uuid + ":0:rwlock_timeout:1"));
  for (const std::string& each : {std::string("price"), end}) {
    const long left = std::stol(server.cli({"PTTL", each}));
    EXPECT_GT(left, 10'000) << each;
    EXPECT_LE(left, 20'000) << each;
  }
  const std::string owner = end.substr(8, end.find(":rwlock_timeout") - 8);
  EXPECT_EQ(server.cli({"HGET", "price", owner}), "1");
  EXPECT_EQ(told(reading->release()), "ok");
  EXPECT_EQ(server.cli({"EXISTS", "price"}), "0");
  EXPECT_EQ(keys(), "");
}

TEST_F(redis_redisson_others, a_writer_is_a_field_that_ends_with_write) {
  // Broken: a reader in Java is let in beside it.
  auto writing = shared_mutex(a, "price", {.ttl = 20s}).acquire();
  ASSERT_TRUE(writing) << writing.error().message();
  EXPECT_EQ(server.cli({"HGET", "price", "mode"}), "write");
  EXPECT_THAT(server.cli({"HKEYS", "price"}), testing::HasSubstr(":0:write"));
  EXPECT_GT(std::stol(server.cli({"PTTL", "price"})), 10'000);
  EXPECT_EQ(told(writing->release()), "ok");
  EXPECT_EQ(server.cli({"EXISTS", "price"}), "0");
}

TEST_F(redis_redisson_others, readers_of_both_sides_share_and_keep_writers_out) {
  // Broken: two readers exclude each other, or a writer is let in beside one.
  read("price", java);
  shared_mutex mine(a, "price");
  auto reading = mine.acquire_shared({.wait = 0s});
  ASSERT_TRUE(reading) << reading.error().message();
  EXPECT_EQ(told(mine.acquire({.wait = 0s})), busy);
  const auto state = a.inspect("price");
  ASSERT_TRUE(state);
  ASSERT_EQ(state->holders.size(), 2U);
  EXPECT_EQ(state->holders[0].mode, lock_mode::shared);
  EXPECT_EQ(told(reading->release()), "ok");
  EXPECT_EQ(server.cli({"HKEYS", "price"}), "mode\n" + java);  // as it was
  EXPECT_EQ(told(mine.acquire({.wait = 0s})), busy);
}

TEST_F(redis_redisson_others, a_writer_of_redisson_keeps_readers_and_writers_out) {
  // Broken: two inside.
  write("price");
  shared_mutex mine(a, "price");
  EXPECT_EQ(told(mine.acquire_shared({.wait = 0s})), busy);
  EXPECT_EQ(told(mine.acquire({.wait = 0s})), busy);
  auto waiting = in_thread([&] { return told(mine.acquire_shared({.wait = patience})); });
  ASSERT_TRUE(listened("redisson_rwlock:{price}"));
  server.cli({"DEL", "price"});
  server.cli({"PUBLISH", "redisson_rwlock:{price}", "1"});
  EXPECT_EQ(waiting.get(), "ok");
}

TEST_F(redis_redisson_others, a_release_keeps_the_lock_for_as_long_as_the_readers_that_are_left) {
  // Broken: a reader in Java is still reading, and the lock is free; or it stays although nobody reads.
  read("price", java, "25000");
  auto reading = shared_mutex(a, "price", {.ttl = 30s}).acquire_shared();
  ASSERT_TRUE(reading) << reading.error().message();
  EXPECT_GT(std::stol(server.cli({"PTTL", "price"})), 25'000);
  EXPECT_EQ(told(reading->release()), "ok");
  const long left = std::stol(server.cli({"PTTL", "price"}));
  EXPECT_LE(left, 25'000);
  EXPECT_GT(left, 10'000);
  // An expired reader keeps nobody out.
  reading = shared_mutex(a, "price", {.ttl = 30s}).acquire_shared();
  ASSERT_TRUE(reading) << reading.error().message();
  server.cli({"DEL", "{price}:" + java + ":rwlock_timeout:1"});
  EXPECT_EQ(told(reading->release()), "ok");
  EXPECT_EQ(server.cli({"EXISTS", "price"}), "0");
}

TEST_F(redis_redisson_others, the_end_of_readers_and_of_writers_is_published) {
  // Broken: a waiter in Java sleeps until our lease would have ended.
  const child_process message_listener = listen_to("redisson_rwlock:{price}");
  shared_mutex mine(a, "price");
  auto one = mine.acquire_shared();
  auto two = shared_mutex(b, "price").acquire_shared();
  ASSERT_TRUE(one && two);
  EXPECT_EQ(told(one->release()), "ok");
  EXPECT_EQ(told(two->release()), "ok");
  EXPECT_TRUE(hears("redisson_rwlock:{price}", "0")) << heard();
  auto writing = mine.acquire();
  ASSERT_TRUE(writing);
  EXPECT_EQ(told(writing->release()), "ok");
  EXPECT_TRUE(hears("redisson_rwlock:{price}", "1")) << heard();
  const std::string all = heard();
  std::size_t messages = 0;
  for (auto at = all.find("message\n"); at != std::string::npos;
       at = all.find("message\n", at + 1)) {
    ++messages;
  }
  EXPECT_EQ(messages, 2U) << all;  // a reader that leaves others behind frees nothing
}

TEST_F(redis_redisson_others, a_reader_is_renewed_and_one_whose_share_has_gone_is_lost) {
  // Broken: a reader that others no longer count continues to read.
  auto reading = shared_mutex(a, "price", {.ttl = 3s}).acquire_shared();
  ASSERT_TRUE(reading) << reading.error().message();
  const std::string end = keys();
  server.cli({"PEXPIRE", end, "2900"});
  server.cli({"PEXPIRE", "price", "2900"});
  const auto fence = reading->fence();
  EXPECT_TRUE(eventually([&] { return std::stol(server.cli({"PTTL", "price"})) > 2'900; }));
  EXPECT_TRUE(reading->valid());
  EXPECT_EQ(reading->fence(), fence);
  server.cli({"DEL", end});
  EXPECT_TRUE(eventually([&] { return !reading->valid(); }));
  EXPECT_TRUE(eventually([&] { return server.cli({"EXISTS", "price"}) == "0"; }));
}

TEST_F(redis_redisson_others, every_reader_keeps_its_own_fence) {
  // Broken: after a repeated request a reader has the fence of another.
  shared_mutex mine(a, "price", {.ttl = 3s});
  auto one = mine.acquire_shared();
  auto two = shared_mutex(b, "price", {.ttl = 3s}).acquire_shared();
  ASSERT_TRUE(one && two);
  EXPECT_LT(one->fence(), two->fence());
  const std::string ends = keys();
  const auto kept = [&](const std::string& end) { return server.cli({"GET", end}); };
  EXPECT_NE(kept(ends.substr(0, ends.find('\n'))), kept(ends.substr(ends.find('\n') + 1)));
  EXPECT_EQ(told(one->release()), "ok");
  EXPECT_EQ(told(two->release()), "ok");
  auto writing = mine.acquire();
  ASSERT_TRUE(writing);
  EXPECT_GT(writing->fence(), two->fence());
}

TEST_F(redis_redisson_others, a_lock_and_a_read_write_lock_of_one_name_are_refused) {
  // Broken: Redisson's read-write lock looks at `mode` alone; so would ours, and two would be inside.
  const std::string conflict(describe(errc::name_conflict));
  auto held = mutex(a, "price").acquire();
  ASSERT_TRUE(held);
  EXPECT_EQ(told(shared_mutex(b, "price").acquire_shared({.wait = 0s})), conflict);
  EXPECT_EQ(told(shared_mutex(b, "price").acquire({.wait = 0s})), conflict);
  EXPECT_EQ(told(held->release()), "ok");
  auto reading = shared_mutex(b, "price").acquire_shared();
  ASSERT_TRUE(reading);
  EXPECT_EQ(told(mutex(a, "price").acquire({.wait = 0s})), conflict);
}

TEST_F(redis_redisson_others, what_cannot_be_shared_honestly_is_refused_with_the_reason) {
  const auto longer = shared_mutex(a, "x", {.ttl = 31s}).acquire_shared();
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error(), errc::unsupported);
  EXPECT_THAT(longer.error().message(), testing::HasSubstr("30 s"));
}

TEST_F(redis_redisson_others, a_latch_is_counted_down_by_both_sides) {
  // Broken: one side waits for a latch that the other has opened.
  const std::string channel = "redisson_countdownlatch__channel__{start}";
  const child_process message_listener = listen_to(channel);
  latch start(a, "start");
  ASSERT_EQ(told(start.set(3)), "ok");
  EXPECT_TRUE(hears(channel, "1")) << heard();
  EXPECT_EQ(server.cli({"GET", "start"}), "3");
  EXPECT_EQ(server.cli({"TTL", "start"}), "-1");
  auto waiting = in_thread([&] { return told(latch(b, "start").wait({.wait = patience})); });
  EXPECT_EQ(start.count_down().value(), 2U);
  EXPECT_EQ(server.cli({"DECR", "start"}), "1");  // as countDown() does
  EXPECT_EQ(start.count().value(), 1U);
  EXPECT_FALSE(arrives(waiting, 1ms));
  EXPECT_EQ(start.count_down().value(), 0U);
  EXPECT_TRUE(hears(channel, "0")) << heard();
  EXPECT_EQ(server.cli({"EXISTS", "start"}), "0");
  EXPECT_EQ(waiting.get(), "ok");
  EXPECT_EQ(told(start.wait({.wait = 0s})), "ok");  // a latch that does not exist is open
}

TEST_F(redis_redisson_others, a_latch_that_redisson_opens_wakes_us) {
  // Broken: we look once a second, or never.
  server.cli({"SET", "start", "1"});
  const std::string channel = "redisson_countdownlatch__channel__{start}";
  latch start(a, "start");
  auto waiting = in_thread([&] { return told(start.wait({.wait = patience})); });
  ASSERT_TRUE(listened(channel));
  server.cli({"DEL", "start"});
  server.cli({"PUBLISH", channel, "0"});
  EXPECT_EQ(waiting.get(), "ok");
  EXPECT_TRUE(eventually([&] { return server.cli({"PUBSUB", "NUMSUB", channel}).ends_with("0"); }));
}

TEST_F(redis_redisson_others, a_count_down_that_is_repeated_does_not_count_in_the_next_round) {
  // Broken: a latch that was set again opens one too early.
  fault_proxy proxy(server.port());
  const client c = open_client(redis_url(proxy.port(), "?dialect=redisson"));
  latch start(a, "start");
  latch far(c, "start");
  ASSERT_EQ(told(start.set(1)), "ok");
  EXPECT_EQ(far.count().value(), 1U);
  proxy.hold(fault_proxy::way::to_client);
  auto counting = in_thread([&] { return told(far.count_down()); });
  ASSERT_TRUE(eventually([&] { return server.cli({"EXISTS", "start"}) == "0"; }));
  ASSERT_EQ(told(start.set(2)), "ok");
  proxy.close();
  proxy.pass();
  EXPECT_EQ(counting.get(), "ok");
  EXPECT_EQ(start.count().value(), 2U);
}

TEST_F(redis_redisson_others, the_first_waiter_of_a_fair_lock_is_woken) {
  // Broken: it sleeps until our lease would have ended.
  const std::string second = "8743c9c0-0795-4907-87fd-6c719a6b4586:75";
  const std::string channel = "redisson_lock__channel:{stock}:" + second;
  auto held = mutex(a, "stock").acquire();
  ASSERT_TRUE(held);
  // The one before it has given up waiting long ago.
  server.cli({"RPUSH", "redisson_lock_queue:{stock}", java, second});
  server.cli({"ZADD", "redisson_lock_timeout:{stock}", "1000", java, "99999999999999", second});
  const child_process message_listener = listen_to(channel);
  EXPECT_EQ(told(held->release()), "ok");
  EXPECT_TRUE(hears(channel, "0")) << heard();
  EXPECT_EQ(server.cli({"LRANGE", "redisson_lock_queue:{stock}", "0", "-1"}), second);
  EXPECT_EQ(server.cli({"ZRANGE", "redisson_lock_timeout:{stock}", "0", "-1"}), second);
}

TEST_F(redis_redisson_others, the_rights_that_the_manual_names_are_enough) {
  // Broken: a lock that can be taken but not released.
  server.cli({"ACL", "SETUSER", "java", "on", ">secret", "~stock/*", "~{stock/*", "~holdfast:*",
              "~redisson_lock_token:*", "resetchannels", "&redisson_lock__channel:*",
              "&redisson_rwlock:*", "&redisson_sc:*", "&redisson_countdownlatch__channel__*",
              "+@all", "-@admin", "-@dangerous", "+info", "+role"});
  const client mine = open_client("redis://java:secret@127.0.0.1:" + std::to_string(server.port()) +
                                  "?dialect=redisson");
  shared_mutex price(mine, "stock/42");
  for (const auto take : {&shared_mutex::acquire_shared, &shared_mutex::acquire}) {
    auto held = (price.*take)({}, {});
    ASSERT_TRUE(held) << held.error().message();
    EXPECT_EQ(told(held->release()), "ok");
  }
  auto permit = semaphore(mine, "stock/api", {.max = 1}).acquire();
  ASSERT_TRUE(permit) << permit.error().message();
  EXPECT_EQ(told(permit->release()), "ok");
  latch start(mine, "stock/latch");
  EXPECT_EQ(told(start.set(1)), "ok");
  EXPECT_EQ(told(start.count_down()), "ok");
  // Without the right to the queue of its fair lock, nobody there is woken; but it is still a
  // release.
  server.cli({"RPUSH", "redisson_lock_queue:{stock/43}", java});
  auto held = mutex(mine, "stock/43").acquire();
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(told(held->release()), "ok");
  EXPECT_EQ(server.cli({"EXISTS", "stock/43"}), "0");
}

}  // namespace
}  // namespace holdfast::test
